"""Towns: a scenario with its towns side by side, a tick in all of them, and what they counted meanwhile."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from surefoot.data.spaces import Discrete
from surefoot.graph.nodes.catalogue import declare
from surefoot.graph.nodes.worlds import NODES as WORLDS
from surefoot.graph.nodes.worlds import parts_of
from surefoot.graph.spec.declare import Types
from surefoot.graph.spec.types import CONST, ONCE, Clock, Type, when
from surefoot.town.scenarios.scenario import VARIANTS, load_scenario, shipped
from surefoot.town.sim.world import TownWorld


@functools.lru_cache(maxsize=64)
def one_town(scenario: str, observations: str) -> TownWorld:
    """A single town, to be asked what its agents see and do."""
    return TownWorld(load_scenario(scenario), 1, variant=None if observations == "scenario" else observations)


def _scenario(params: Mapping[str, Any], given: Mapping[str, Type]) -> Types:
    town = one_town(params["scenario"], params["observations"])
    streams = params["towns"] * town.agents
    assert isinstance(town.action, Discrete)
    parts, raw = parts_of(town.observation, streams), frozenset({"raw"})
    return {
        "sim_handle": Type("world", "int64", (streams,), parts, raw),
        "observations": Type("obs", parts=parts, tags=raw),
    }


def _stats_clocks(params: Mapping[str, Any], given: Mapping[str, Clock]) -> tuple[Clock, dict[str, Clock]]:
    fires = given.get("trigger", when("counts"))
    return fires, {"counts": fires, "conflicts": fires}


NODES = declare(
    "town",
    {"scenario": tuple(shipped()), "town_observations": ("scenario", *VARIANTS)},
    Scenario={
        "infer": _scenario,
        "clocks": lambda params, given: (ONCE, {"sim_handle": CONST, "observations": ONCE}),
        "streams": lambda params: ("towns", one_town(params["scenario"], "features").agents),
    },
    ConflictStats={"clocks": _stats_clocks},
)
NODES["TownStep"] = replace(
    WORLDS["Step"],
    name="TownStep",
    category="Town",
    summary="A tick of all towns: agents walk, queue, quarrel and work. Who is not in town has rows that do not count.",
    calls="surefoot.town.sim.world.TownWorld.step",
    aliases=(),
)
