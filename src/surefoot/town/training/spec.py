"""Make the spec of a run from a scenario and settings, and its training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surefoot.errors import ConfigError
from surefoot.town.scenarios.scenario import Scenario
from surefoot.town.sim.world import TownWorld
from surefoot.town.worlds import PREFIX, env_maker
from surefoot.train.spec import RunSpec, make_spec
from surefoot.train.training import Training

# With 80 ticks per rollout a batch of 15,360 steps: larger ones leave too few updates in the budget of a run.
STREAMS = 192


def town_spec(
    scenario: Scenario,
    *,
    settings: Mapping[str, Any] | None = None,
    steps: int | None = None,
    towns: int | None = None,
    rollout_ticks: int | None = None,
    variant: str | None = None,
    central: bool = False,
    **fixed: Any,
) -> RunSpec:
    """Return the spec of a run: the preset for towns, then the scenario's settings, then `settings` under any names."""
    rules = scenario.training
    usual = rules.towns or max(1, STREAMS // len(scenario.agents))
    count = towns or usual
    # With fewer towns more ticks per rollout, up to one episode, so that batches stay as large.
    wanted = min(-(-usual * rules.rollout_ticks // count), scenario.ticks)
    chosen: dict[str, Any] = {
        "envs": count * len(scenario.agents),
        "rollout_steps": rollout_ticks or max(rules.rollout_ticks, wanted),
        **rules.settings,
        **({"critic_only": "state"} if central else {}),
        **(settings or {}),
    }
    kwargs: dict[str, Any] = {"scenario": scenario.to_json()}
    kwargs |= {"variant": variant} if variant is not None else {}
    kwargs |= {"central": True} if central else {}
    env = PREFIX + scenario.name
    probe = env_maker(env, kwargs)(1)
    spec = make_spec(env, probe.action, settings=chosen, total_steps=steps or rules.steps, env_kwargs=kwargs, **fixed)
    if spec.ppo.envs % len(scenario.agents):
        raise ConfigError(
            f"envs is {spec.ppo.envs}; it counts agents and must be a multiple of the {len(scenario.agents)} of a town"
        )
    return spec


def town_training(spec: RunSpec) -> Training:
    """Return the training of a town's spec: worlds, policy, collector and learner."""
    make = env_maker(spec.env, spec.env_kwargs)
    world = make(spec.ppo.envs)
    assert isinstance(world, TownWorld)
    # Towns that all start at midnight show one part of the day per update, and the policy forgets the others.
    world.stagger = True
    return Training(spec, make=make, world=world)
