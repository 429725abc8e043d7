"""A town's training from its scenario, and its policy at work: deciding, and measured in towns it never saw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from surefoot.cli.worlds import TOWN, town_maker
from surefoot.envs.api import View
from surefoot.errors import ConfigError
from surefoot.nets.policy import Policy, Seen
from surefoot.town.scenarios.scenario import Scenario
from surefoot.town.sim.town_loop import play_towns
from surefoot.town.sim.world import TownWorld
from surefoot.train.collect.replay_cycles import Cycles
from surefoot.train.evaluate import chooser
from surefoot.train.spec import RunSpec, make_spec
from surefoot.train.training import Training


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
    """The whole of a run: the preset for towns, what the scenario says, then `settings` under any names."""
    rules = scenario.training
    streams = (towns or rules.towns) * len(scenario.agents)
    chosen: dict[str, Any] = {
        "envs": streams,
        "steps": rollout_ticks or _ticks(scenario, towns or rules.towns),
        **rules.settings,
        **({"critic_only": "state"} if central else {}),
        **(settings or {}),
    }
    kwargs: dict[str, Any] = {"scenario": scenario.to_json()}
    kwargs |= {"variant": variant} if variant is not None else {}
    kwargs |= {"central": True} if central else {}
    env = TOWN + scenario.name
    probe = town_maker(env, kwargs)(1)
    spec = make_spec(env, probe.action, settings=chosen, total_steps=steps or rules.steps, env_kwargs=kwargs, **fixed)
    if spec.ppo.envs % len(scenario.agents):
        raise ConfigError(
            f"envs is {spec.ppo.envs}; it counts agents, {len(scenario.agents)} of which make a town here"
        )
    return spec


def _ticks(scenario: Scenario, towns: int) -> int:
    """Ticks of a rollout: the scenario's; fewer towns live longer, up to an episode, so that updates see as many steps."""
    rules = scenario.training
    wanted = -(-rules.towns * rules.rollout_ticks // towns)
    return max(rules.rollout_ticks, min(wanted, scenario.ticks))


def town_training(spec: RunSpec) -> Training:
    """Worlds, policy, collector and learner of a town's spec."""
    return Training(spec, make=town_maker(spec.env, spec.env_kwargs))


def town_world(training: Training | Cycles) -> TownWorld:
    """The training's own towns."""
    assert isinstance(training.world, TownWorld)
    return training.world


class PolicyRuntime:
    """A policy that decides in a town, and says how likely and how good it found what it did."""

    def __init__(self, policy: Policy, *, seed: int = 0, deterministic: bool = False, device: str = "cpu") -> None:
        self.policy, self.deterministic, self.device = policy, deterministic, torch.device(device)
        self.generator = torch.Generator(self.device).manual_seed(seed)
        self.log_prob = self.value = np.zeros(0, np.float32)
        """Of the last decision, one a stream."""

    @torch.no_grad()
    def __call__(self, world: TownWorld, view: View) -> np.ndarray:
        """One action a stream."""
        mask = None if view.action_mask is None else torch.from_numpy(view.action_mask).to(self.device)
        obs = {name: torch.from_numpy(x).to(self.device) for name, x in view.obs.items()}
        seen = Seen(obs=obs, action_mask=mask, context=self.policy.initial_context(world.num_envs))
        out = self.policy.act(seen, generator=self.generator, deterministic=self.deterministic)
        self.log_prob, self.value = out.log_prob.cpu().numpy(), out.value.cpu().numpy()
        return self.policy.env_action(out.action.cpu().numpy())


def measure_policy(
    policy: Policy,
    scenario: Scenario,
    episodes: int = 64,
    *,
    seed: int,
    variant: str | None = None,
    central: bool = False,
) -> dict[str, np.ndarray]:
    """{measure: [episodes]} of a policy's likeliest actions, in towns that training never saw."""
    world = TownWorld(scenario, min(episodes, 64), variant=variant, central=central)
    choose = chooser(policy, world.num_envs, seed=seed, deterministic=True, device=torch.device("cpu"))
    start = np.ones(world.num_envs, np.bool_)
    return play_towns(world, lambda world, view: choose(view, start), episodes, seed=seed)
