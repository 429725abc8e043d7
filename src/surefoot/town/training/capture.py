"""What a policy, the script or chance did in a town, as samples that say how they came about; and samples as episodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from surefoot.data.replayset import ReplayDataset, RolloutBuffer, samples_of
from surefoot.data.trajectory import Recording, Trajectory
from surefoot.errors import ConfigError, ReplayError
from surefoot.nets.policy import Policy
from surefoot.town.scenarios.scenario import Scenario
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
    """What a policy did in `ticks` ticks, with its own log-probs and values: one sample an agent and stretch."""
    if ticks < 1:
        raise ConfigError(f"ticks is {ticks}; a capture needs at least 1")
    world = TownWorld(scenario, towns, variant=variant)
    collector = Collector(world, policy, steps=ticks, gamma=0.99, seed=seed)
    rollout = collector.collect(version)
    return _buffer(rollout, world, ticks, {"seed": seed, "policy_hash": policy_hash(policy), "behaviour": "policy"})


def capture_behaviour(
    scenario: Scenario, behaviour: str, ticks: int, *, seed: int, towns: int = 1, variant: str | None = None
) -> RolloutBuffer:
    """The same of the script or of chance; a script's log-probs are 0, for it always does what it does."""
    from surefoot.data.rollout import Rollout
    from surefoot.town.sim.town_loop import decider

    world = TownWorld(scenario, towns, variant=variant)
    decide, view = decider(world, behaviour, seed), world.reset(seed)
    rows: list[dict[str, np.ndarray]] = []
    for _ in range(ticks):
        action = decide(world, view)
        mask = view.action_mask
        assert mask is not None
        likely = -np.log(mask.sum(axis=1)) if behaviour == "random" else np.zeros(world.num_envs)
        step = world.step(action)
        rows.append(
            {
                **{f"obs.{name}": x for name, x in view.obs.items()},
                "action": np.asarray(action, np.int64),
                "log_prob": likely.astype(np.float32),
                "reward": step.reward.astype(np.float32),
                "terminated": step.terminated,
                "truncated": step.truncated,
                "valid": step.valid,
                "action_mask": mask,
            }
        )
        view = step.view
    whole = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    zeros, ended = np.zeros_like(whole["log_prob"]), whole["terminated"] | whole["truncated"]
    rollout = Rollout(
        obs={name.removeprefix("obs."): x for name, x in whole.items() if name.startswith("obs.")},
        action=whole["action"],
        log_prob=whole["log_prob"],
        value=zeros,
        next_value=zeros,
        reward=whole["reward"],
        terminated=whole["terminated"],
        truncated=whole["truncated"],
        start=np.concatenate([np.ones_like(ended[:1]), (ended | ~whole["valid"])[:-1]]),
        valid=whole["valid"],
        policy_version=np.zeros(zeros.shape, np.int64),
        action_mask=whole["action_mask"],
    )
    return _buffer(rollout, world, ticks, {"seed": seed, "policy_hash": None, "behaviour": behaviour})


def _buffer(rollout: Any, world: TownWorld, ticks: int, about: Mapping[str, Any]) -> RolloutBuffer:
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
    made = RolloutBuffer()
    agents = [resident.id for resident in scenario.agents]
    made.extend(
        samples_of(rollout, agents=agents, feature_names=world.feature_names, meta=meta, actions=scenario.actions)
    )
    made.record_events(world.take_counts())
    made.set_tick_count(ticks)
    return made


def policy_hash(policy: Policy) -> str:
    """sha256 of the weights, so that a sample says who made it."""
    import hashlib

    whole = hashlib.sha256()
    for name, x in sorted(policy.state_dict().items()):
        whole.update(name.encode())
        whole.update(x.detach().cpu().contiguous().numpy().tobytes())
    return whole.hexdigest()


def trajectories_of(dataset: ReplayDataset) -> Recording:
    """Samples as episodes to be cloned; a sample has no look behind its last step, so that step is left out."""
    from surefoot.data.spaces import Box, Discrete

    made: list[Trajectory] = []
    for number in range(len(dataset.source)):
        sample = dataset.sample(number)
        if sample.steps < 2:
            continue
        obs = {"features": sample.features} | ({"map": sample.map} if sample.map.shape[1] else {})
        made.append(
            Trajectory(
                obs=obs,
                action=sample.actions[:-1],
                reward=sample.rewards[:-1].astype(np.float64),
                terminated=False,
                truncated=False,
                action_mask=None if sample.action_masks is None else sample.action_masks[:-1],
            )
        )
    if not made:
        raise ReplayError("no sample has two steps or more, so there is nothing to clone")
    first = dataset.first
    observation = {"features": Box(first.features.shape[1:])} | (
        {"map": Box(first.map.shape[1:])} if first.map.shape[1] else {}
    )
    return Recording(env=dataset.label, observation=observation, action=Discrete(first.action_dim), episodes=made)
