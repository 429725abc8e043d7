"""Agents and the learner: who is not there leaves no trace; the streams that were asked for are the ones that come."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from surefoot import ActorCritic, Collector, Learner, NetConfig, PPOConfig
from surefoot.envs.agents.pettingzoo import agents_world
from surefoot.envs.builtin.multi_agent_toys import Relay
from surefoot.envs.make import make_streams, make_world


@pytest.mark.parametrize("path", ["torch", "auto"])
def test_what_stands_in_the_rows_of_absent_agents_changes_nothing(path: str):
    """Loss, advantages and their scaling, entropy, KL, statistics: all digits stay, whatever an absent agent's row says."""
    config = PPOConfig(rollout_steps=20, envs=6, minibatch_size=16, epochs=2, path=path)
    outcomes = []
    for scrambled in (False, True):
        world = agents_world(Relay, 2)
        policy = ActorCritic(world.observation, world.action, NetConfig(hidden=(8,), normalize_obs=True), seed=3)
        rollout = Collector(world, policy, steps=20, gamma=0.9, path=path).collect()
        absent = ~rollout.valid
        assert 0.2 < absent.mean() < 0.8
        if scrambled:
            rng = np.random.default_rng(0)
            parts = {name: getattr(rollout, name).copy() for name in ("value", "next_value", "reward", "log_prob")}
            for x in parts.values():
                x[absent] = rng.normal(size=absent.sum()) * 100
            obs = {name: x.copy() for name, x in rollout.obs.items()}
            for x in obs.values():
                x[absent] = 77.0
            rollout = dataclasses.replace(rollout, obs=obs, **parts)
        report = Learner(policy, config, total_updates=10).update(rollout)
        outcomes.append((report.metrics(), {name: x.numpy().copy() for name, x in policy.state_dict().items()}))
    (one, weights), (two, others) = outcomes
    assert one == two
    for name, x in weights.items():
        assert np.array_equal(x, others[name]), name


def test_env_steps_count_only_who_was_there():
    world = agents_world(lambda: Relay(runners=3, life=3, stride=2, laps=1), 1)
    collector = Collector(world, ActorCritic(world.observation, world.action), steps=7, gamma=0.9)
    collector.collect()
    assert collector.env_steps == 9
    assert collector.episodes.finished == 3


def test_streams_are_counted_in_whole_copies():
    assert make_world(Relay, 4).num_envs == 12
    assert make_streams(Relay, 12).num_envs == 12
    assert make_streams(Relay, 2).num_envs == 3, "less than one copy cannot be had"
    assert make_streams("CartPole-v1", 5).num_envs == 5
    ready = agents_world(Relay, 2)
    assert make_streams(ready, 6) is ready
