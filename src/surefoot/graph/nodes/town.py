"""Towns at work: the library's own world behind the same two handles as any environment."""

from __future__ import annotations

from typing import Any

from surefoot.envs.api import World
from surefoot.errors import ConfigError
from surefoot.graph.nodes.worlds import Environment, Step
from surefoot.town.scenarios.scenario import load_scenario
from surefoot.town.sim.world import TownWorld


class Scenario(Environment):
    """`towns` copies of a scenario; what their agents see first is said once."""

    def __init__(self, scenario: str, towns: int = 64, observations: str = "scenario", *, seed: int = 0) -> None:
        variant = None if observations == "scenario" else observations
        self.town = self.world = TownWorld(load_scenario(scenario), towns, variant=variant)
        self.num_envs, self.seed = self.world.num_envs, seed


class TownStep(Step):
    """A tick of all towns."""


class ConflictStats:
    """What towns counted between two updates."""

    def snapshot(self) -> dict[str, Any]:
        """The towns keep the counts."""
        return {}

    def restore(self, saved: dict[str, Any]) -> None:
        """Nothing to do."""

    def __call__(self, trigger: Any, sim_handle: World) -> tuple[dict[str, float], float]:
        if not isinstance(sim_handle, TownWorld):
            raise ConfigError(f"{sim_handle.name} is no town; ConflictStats takes the sim_handle of a Scenario")
        counts = sim_handle.take_counts()
        lived = max(counts["rollout_ticks"] * sim_handle.agents * sim_handle.towns, 1.0)
        return counts, 100.0 * counts["queue_conflict_events"] / lived
