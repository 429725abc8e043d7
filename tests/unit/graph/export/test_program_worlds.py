"""Environments of standalone programs."""

import gymnasium as gym
import numpy as np

from surefoot.envs.builtin.cartpole import CartPoleContinuous
from surefoot.graph.export.program_worlds import GymCopies, SideBySide, TaskCopies


def test_gym_copies_step_like_gymnasium() -> None:
    world, env = GymCopies("CartPole-v1", 2), gym.make("CartPole-v1")
    first = env.reset(seed=5)[0]
    assert np.array_equal(world.reset(4).obs["obs"][1], first.astype(np.float32))
    obs, reward, *_ = env.step(1)
    step = world.step(np.array([0, 1]))
    assert np.array_equal(step.view.obs["obs"][1], obs.astype(np.float32))
    assert step.reward[1] == reward


def test_a_time_limit_truncates_and_the_final_observation_is_not_the_next_one() -> None:
    task = CartPoleContinuous()
    world = TaskCopies(task, 3)
    world.reset(0)
    world.limit = 2
    world.step(np.zeros((3, 1), np.float32))
    step = world.step(np.zeros((3, 1), np.float32))
    assert step.truncated.all()
    assert step.final_obs is not None
    assert not np.array_equal(step.final_obs["obs"], step.view.obs["obs"])
    assert world.age.tolist() == [0, 0, 0]


def test_side_by_side_splits_the_actions_and_joins_the_rows() -> None:
    world = SideBySide((TaskCopies(CartPoleContinuous(), 2), 1), (TaskCopies(CartPoleContinuous(), 3), 2))
    alone = TaskCopies(CartPoleContinuous(), 3)
    assert world.reset(99).obs["obs"].shape[0] == 5
    assert np.array_equal(world.reset(99).obs["obs"][2:], alone.reset(2).obs["obs"])
    actions = np.linspace(-1, 1, 5, dtype=np.float32)[:, None]
    assert np.array_equal(world.step(actions).reward[2:], alone.step(actions[2:]).reward)
