"""A rollout from single ticks is the collector's, field by field."""

import numpy as np
import pytest
import torch

from surefoot.data.seeds import seed_for
from surefoot.envs.make import make_world
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.policy import PolicyInput
from surefoot.train.collect.collector import Collector
from surefoot.train.collect.tick_collector import ActionRecord, Ticks
from surefoot.train.config import CollectConfig

STEPS, STREAMS = 24, 3
FIELDS = (
    "action",
    "log_prob",
    "value",
    "next_value",
    "reward",
    "terminated",
    "truncated",
    "start",
    "valid",
    "policy_version",
)


def walked(env: str, *, rollouts: int, scale: bool, successors: bool = True):
    """Rollouts by ticks, driven as a graph does it."""
    world = make_world(env, STREAMS)
    policy = ActorCritic(world.observation, world.action, seed=1)
    generator = torch.Generator().manual_seed(seed_for("act", 1))
    view = world.reset(1)
    ticks = Ticks(policy, STREAMS, steps=STEPS, gamma=0.9, scale_rewards=scale)
    made = []
    while len(made) < rollouts:
        with torch.no_grad():
            out = policy.act(
                PolicyInput(obs={n: torch.from_numpy(x) for n, x in view.obs.items()}), generator=generator
            )
        step = world.step(policy.env_action(out.action.numpy()))
        ended = step.terminated | step.truncated
        after = step.view.obs
        if step.final_obs is not None:
            after = {n: np.where(ended[:, None], step.final_obs[n], x) for n, x in after.items()}
        chosen = ActionRecord(action=out.action, value=out.value, log_prob=out.log_prob, obs=view.obs)
        ticks.add(chosen, step.reward, step.terminated, step.truncated, after=after if successors else None)
        view = step.view
        if ticks.full:
            made.append(ticks.rollout(0))
    return made, ticks


@pytest.mark.parametrize(("env", "scale"), [("CartPole-v1", False), ("Pendulum-v1", True)])
def test_ticks_make_the_collectors_rollouts(env: str, scale: bool) -> None:
    world = make_world(env, STREAMS)
    policy = ActorCritic(world.observation, world.action, seed=1)
    config = CollectConfig(normalize_reward=scale)
    collector = Collector(world, policy, steps=STEPS, gamma=0.9, config=config, seed=1, path="torch")
    count = 10 if env == "Pendulum-v1" else 4  # far enough for episodes to be cut short
    made, ticks = walked(env, rollouts=count, scale=scale)
    for rollout in made:
        theirs = collector.collect(0)
        for name in FIELDS:
            ours, want = getattr(rollout, name), getattr(theirs, name)
            keep = ~theirs.terminated if name == "next_value" else np.ones_like(theirs.valid)
            assert np.array_equal(ours[keep], want[keep]), name
        assert np.array_equal(rollout.obs["obs"], theirs.obs["obs"])
    assert any((rollout.truncated | rollout.terminated).any() for rollout in made)
    assert ticks.episodes.recent() == collector.episodes.recent()
    assert ticks.env_steps == collector.env_steps


def test_steps_whose_successor_nobody_knows_are_left_out() -> None:
    made, _ = walked("Pendulum-v1", rollouts=10, scale=False, successors=False)
    for rollout in made:
        assert not rollout.valid[-1].any()
        assert not rollout.valid[rollout.truncated].any()
        counted = rollout.valid[:-1]
        assert np.array_equal(rollout.next_value[:-1][counted], rollout.value[1:][counted])
    assert sum(rollout.truncated.sum() for rollout in made) == 3
