"""evaluate_policy and make_vec_env."""

import pytest

from surefoot.envs.make import backend_of
from surefoot.nets.actor_critic import ActorCritic
from surefoot.train.interop.sb3_functions import evaluate_policy, make_vec_env


def test_a_policy_without_a_model_is_evaluated_on_the_same_seeds_each_time() -> None:
    world = make_vec_env("CartPole-v1", 2)
    policy = ActorCritic(world.observation, world.action)
    first = evaluate_policy(policy, "CartPole-v1", 3, return_episode_rewards=True)
    assert first == evaluate_policy(policy, "CartPole-v1", 3, return_episode_rewards=True)
    returns, lengths = first
    assert returns == lengths  # CartPole pays 1 per step
    mean, _ = evaluate_policy(policy, "CartPole-v1", 3)
    assert mean == pytest.approx(sum(returns) / 3)


def test_gymnasium_is_used_if_asked_for() -> None:
    world = make_vec_env("CartPole-v1", 2, seed=1, backend="gymnasium")
    assert (world.num_envs, backend_of(world)) == (2, "gymnasium")
