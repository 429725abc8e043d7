"""Towns at work: the library's own world behind the same two handles as any environment."""

from __future__ import annotations

from typing import Any

from surefoot.envs.api import World
from surefoot.errors import ConfigError
from surefoot.graph.runtime.base import RuntimeNode
from surefoot.graph.runtime.worlds import EnvironmentNode, StepNode
from surefoot.town.scenarios.scenario import load_scenario
from surefoot.town.sim.world import TownWorld


class ScenarioNode(EnvironmentNode):
    """`towns` copies of a scenario; what their agents see first is said once."""

    def setup(self) -> None:
        """Make the towns."""
        variant = None if self.params.observations == "scenario" else self.params.observations
        self.town = self.world = TownWorld(load_scenario(self.params.scenario), self.params.towns, variant=variant)


class TownStepNode(StepNode):
    """A tick of all towns."""


class ConflictStatsNode(RuntimeNode):
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
