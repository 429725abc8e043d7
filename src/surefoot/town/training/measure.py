"""Measures of policies and of scripted behaviour in towns that training never used."""

from __future__ import annotations

import numpy as np
import torch

from surefoot.nets.policy import Policy
from surefoot.town.scenarios.scenario import Scenario
from surefoot.town.sim.town_loop import decider, play_towns
from surefoot.town.sim.world import TownWorld
from surefoot.train.evaluate import EVAL_SEED_OFFSET, chooser

# More towns than these side by side only cost memory: an episode's ticks are what takes time.
MOST_TOWNS = 64


def measure_policy(
    policy: Policy,
    scenario: Scenario,
    episodes: int = 64,
    *,
    seed: int,
    variant: str | None = None,
    central: bool = False,
) -> dict[str, np.ndarray]:
    """Return {measure: [episodes]} of a policy that takes its most probable actions."""
    world = TownWorld(scenario, min(episodes, MOST_TOWNS), variant=variant, central=central)
    choose = chooser(policy, world.num_envs, seed=seed, deterministic=True, device=torch.device("cpu"))
    start = np.ones(world.num_envs, np.bool_)
    return play_towns(world, lambda world, view: choose(view, start), episodes, seed=seed)


def measure_behaviour(scenario: Scenario, behaviour: str, episodes: int, seed: int) -> dict[str, np.ndarray]:
    """Return {measure: [episodes]} of "script", "random" or "idle"."""
    world = TownWorld(scenario, min(episodes, MOST_TOWNS))
    return play_towns(world, decider(world, behaviour, seed), episodes, seed=seed + EVAL_SEED_OFFSET)
