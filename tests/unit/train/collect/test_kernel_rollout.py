"""Rollouts that the kernel fills in one call, and runs that continue from them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from surefoot import native
from surefoot.data.spaces import Box
from surefoot.envs.builtin.classic import CLASSIC
from surefoot.learn.config import PPOConfig
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.train.collect.collector import Collector
from surefoot.train.config import CollectConfig
from surefoot.train.spec import RunSpec
from surefoot.train.training import Training

pytestmark = pytest.mark.skipif(native.kernel is None, reason=native.why_not)
PLAIN = {"obs": Box((3,))}
MIXED = {"b": Box((2,)), "a": Box((2, 2), 0.0, 255.0, "uint8")}


@pytest.mark.parametrize("memory", ["none", "gru", "lstm"])
def test_a_native_world_in_one_call_tells_the_same_as_step_by_step(memory):
    rollouts = []
    for nonfinite in ("raise", "drop_episode"):  # the latter looks at every step, so it takes them one by one
        world = CLASSIC["CartPole-v1"](6)
        net = NetConfig(hidden=(8, 8), memory=memory, memory_size=7)
        policy = ActorCritic(world.observation, world.action, net, seed=2)
        config = CollectConfig(nonfinite=nonfinite)
        collector = Collector(world, policy, steps=700, gamma=0.99, config=config, seed=1)
        collector.collect()
        rollouts.append((collector.collect(1), collector))
    (mine, ours), (its, theirs) = rollouts
    for name, array in its.arrays().items():
        np.testing.assert_array_equal(mine.arrays()[name], array, err_msg=name)
    assert mine.stats == its.stats
    np.testing.assert_array_equal(mine.action, its.action)
    np.testing.assert_array_equal(mine.log_prob, its.log_prob)
    np.testing.assert_array_equal(mine.next_value, its.next_value)
    assert ours.episodes.state()["recent"] == theirs.episodes.state()["recent"]
    np.testing.assert_array_equal(ours.view.obs["obs"], theirs.view.obs["obs"])
    assert str(ours.state()) == str(theirs.state())


def test_cut_episodes_are_worth_what_the_critic_says_of_their_last_observation():
    world = CLASSIC["Pendulum-v1"](3)  # ends by its time limit alone, after 200 steps
    policy = ActorCritic(world.observation, world.action, NetConfig(hidden=(8, 8)), seed=2)
    rollout = Collector(world, policy, steps=250, gamma=0.99, seed=1).collect()
    assert rollout.truncated[199].all()
    assert rollout.truncated.sum() == 3
    elsewhere = ~rollout.truncated[:-1]
    np.testing.assert_array_equal(rollout.next_value[:-1][elsewhere], rollout.value[1:][elsewhere])
    assert (rollout.next_value[199] != rollout.value[200]).all()


def a_run(path: str = "auto", **knobs: Any) -> RunSpec:
    ppo = PPOConfig(rollout_steps=64, envs=4, minibatch_size=64, epochs=3, lr=1e-3, seed=4, path=path)
    return RunSpec(
        env="Pendulum-v1",
        preset="sb3",
        total_steps=10**6,
        ppo=ppo,
        net=NetConfig(hidden=(16,), **knobs),
        collect=CollectConfig(),
        eval_every=0,
        checkpoint_every=10**9,
    )


def states_equal(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(states_equal(a[k], b[k]) for k in a)
    if isinstance(a, torch.Tensor | np.ndarray):
        return bool(np.array_equal(np.asarray(a), np.asarray(b), equal_nan=True))
    return a == b


@pytest.mark.parametrize(
    "knobs", [{}, {"normalize_obs": True}, {"squash": True}, {"memory": "gru"}, {"memory": "lstm"}]
)
def test_a_training_put_back_goes_on_to_the_last_bit(knobs):
    first = Training(a_run(**knobs))
    for _ in range(2):
        assert first.update().path == "native"
    kept = first.state()
    second = Training(a_run(**knobs))
    second.set_state(kept)
    for _ in range(3):
        one, other = first.update(), second.update()
        assert one.loss == other.loss
    assert states_equal(first.state(), second.state())


def test_a_run_may_change_its_path_on_the_way():
    kept = Training(a_run())
    kept.update()
    parts = kept.state()
    for before, after in (("native", "torch"), ("torch", "native")):
        training = Training(a_run(before))
        if before == "native":
            training.set_state(parts)
        training.update()
        other = Training(a_run(after))
        other.set_state(training.state())
        report = other.update()
        assert report.path == after
        assert report.first_ratio_error < 1e-5
        assert np.isfinite(report.loss)
