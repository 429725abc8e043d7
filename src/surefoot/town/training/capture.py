"""Samples of a policy, of the script or of random actions in a town, with metadata; and samples as episodes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from surefoot.data.replayset import ReplayDataset, RolloutBuffer, samples_of
from surefoot.data.rollout import Rollout
from surefoot.data.rollout_builder import RolloutBuilder
from surefoot.data.spaces import Box, Discrete
from surefoot.data.trajectory import Recording, Trajectory
from surefoot.errors import ConfigError, ReplayError
from surefoot.nets.policy import Policy
from surefoot.town.scenarios.scenario import Scenario
from surefoot.town.sim.town_loop import decider
from surefoot.town.sim.world import TownWorld
from surefoot.train.collect.collector import Collector


def capture_samples(
    policy: Policy,
    scenario: Scenario,
    ticks: int,
    *,
    seed: int,
    towns: int = 1,
    variant: str | None = None,
    version: int = 0,
) -> RolloutBuffer:
    """Let a policy act for `ticks` ticks; return one sample per agent and episode, with log-probs and values."""
    if ticks < 1:
        raise ConfigError(f"ticks is {ticks}; a capture needs at least 1")
    world = TownWorld(scenario, towns, variant=variant)
    collector = Collector(world, policy, steps=ticks, gamma=0.99, seed=seed)
    rollout = collector.collect(version)
    return _buffer(rollout, world, ticks, {"seed": seed, "policy_hash": policy_hash(policy), "behaviour": "policy"})


def capture_behaviour(
    scenario: Scenario, behaviour: str, ticks: int, *, seed: int, towns: int = 1, variant: str | None = None
) -> RolloutBuffer:
    """Return the samples of "script", "random" or "idle"; the log-probs of a deterministic behaviour are 0."""
    world = TownWorld(scenario, towns, variant=variant)
    decide, view = decider(world, behaviour, seed), world.reset(seed)
    builder, start = RolloutBuilder(ticks, world.num_envs), np.ones(world.num_envs, np.bool_)
    zeros = np.zeros(world.num_envs, np.float32)
    for _ in range(ticks):
        action = decide(world, view)
        mask = view.action_mask
        assert mask is not None
        step = world.step(action)
        builder.add(
            {
                **{f"obs.{name}": x for name, x in view.obs.items()},
                "action": np.asarray(action, np.int64),
                "log_prob": -np.log(mask.sum(axis=1)).astype(np.float32) if behaviour == "random" else zeros,
                "value": zeros,
                "next_value": zeros,
                "reward": step.reward.astype(np.float32),
                "terminated": step.terminated,
                "truncated": step.truncated,
                "start": start,
                "valid": step.valid,
                "action_mask": mask,
            }
        )
        view, start = step.view, step.terminated | step.truncated | ~step.valid
    about = {"seed": seed, "policy_hash": None, "behaviour": behaviour}
    return _buffer(builder.build(0), world, ticks, about)


def _buffer(rollout: Rollout, world: TownWorld, ticks: int, about: Mapping[str, Any]) -> RolloutBuffer:
    scenario = world.scenario
    meta = {
        "variant": world.variant,
        "map_channels": [] if world.maps is None else world.maps.channels,
        "embedding_slot": None,
        "social_context": {"ties": scenario.rivalry.max_ties},
        "capture_metadata": {
            "config_id": scenario.name,
            "scenario_name": scenario.name,
            "scenario_description": scenario.description,
            "ticks": ticks,
            "towns": world.towns,
            "scenario": scenario.to_json(),
            **about,
        },
    }
    buffer = RolloutBuffer()
    agents = [resident.id for resident in scenario.agents]
    buffer.extend(
        samples_of(rollout, agents=agents, feature_names=world.feature_names, meta=meta, actions=scenario.actions)
    )
    buffer.record_events(world.take_counts())
    buffer.set_tick_count(ticks)
    return buffer


def policy_hash(policy: Policy) -> str:
    """Return the sha256 of the weights, which a sample carries."""
    digest = hashlib.sha256()
    for name, x in sorted(policy.state_dict().items()):
        digest.update(name.encode())
        digest.update(x.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def trajectories_of(dataset: ReplayDataset) -> Recording:
    """Return samples as episodes for cloning, without their last step: a sample has no observation after it."""
    episodes: list[Trajectory] = []
    for number in range(len(dataset.source)):
        sample = dataset.sample(number)
        if sample.steps < 2:
            continue
        obs = {"features": sample.features} | ({"map": sample.map} if sample.map.shape[1] else {})
        episodes.append(
            Trajectory(
                obs=obs,
                action=sample.actions[:-1],
                reward=sample.rewards[:-1].astype(np.float64),
                terminated=False,
                truncated=False,
                action_mask=None if sample.action_masks is None else sample.action_masks[:-1],
            )
        )
    if not episodes:
        raise ReplayError("no sample has two steps or more, so there is nothing to clone")
    first = dataset.first
    observation = {"features": Box(first.features.shape[1:])} | (
        {"map": Box(first.map.shape[1:])} if first.map.shape[1] else {}
    )
    return Recording(env=dataset.label, observation=observation, action=Discrete(first.action_dim), episodes=episodes)
