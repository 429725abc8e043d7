"""Towns: a scenario with its towns side by side, a tick in all of them, and what they counted meanwhile."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from surefoot.data.kinds import Interval, choice, whole
from surefoot.data.spaces import Discrete
from surefoot.graph.catalogue.worlds import STEP, parts_of
from surefoot.graph.spec.declare import NodeType, Param, Port, Types
from surefoot.graph.spec.types import CONST, ONCE, Clock, Type, when
from surefoot.town.scenarios.scenario import VARIANTS, load_scenario, shipped
from surefoot.town.sim.world import TownWorld


@functools.lru_cache(maxsize=64)
def one_town(scenario: str, observations: str) -> TownWorld:
    """A single town, to be asked what its agents see and do."""
    return TownWorld(load_scenario(scenario), 1, variant=None if observations == "scenario" else observations)


def _streams(params: Mapping[str, Any]) -> tuple[str, int]:
    return "towns", one_town(params["scenario"], "features").agents


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


NODES = (
    NodeType(
        name="Scenario",
        category="Town",
        summary="A town's scenario, many towns of it side by side: every agent of every town is a stream of one policy.",
        params=(
            Param(name="scenario", kind=choice(*shipped()), help="Which; `surefoot town scenarios` tells of each."),
            Param(name="towns", kind=whole(Interval(1, 65_536)), help="Towns side by side.", default=64),
            Param(
                name="observations",
                kind=choice("scenario", *VARIANTS),
                help="What agents see: as the scenario says, features alone, or a map beside them.",
                default="scenario",
            ),
        ),
        outputs=(
            Port(name="sim_handle", type=Type("world"), help="The towns themselves, for TownStep."),
            Port(name="observations", type=Type("obs"), help="What all agents see first; said once."),
        ),
        runtime="surefoot.graph.nodes.town:Scenario",
        calls="surefoot.town.sim.world.TownWorld",
        effect="rng",
        needs=("seed",),
        source=ONCE,
        infer=_scenario,
        clocks=lambda params, given: (ONCE, {"sim_handle": CONST, "observations": ONCE}),
        streams=_streams,
    ),
    replace(
        STEP,
        name="TownStep",
        category="Town",
        summary="A tick of all towns: agents walk, queue, quarrel and work. Who is not in town has rows that do not count.",
        runtime="surefoot.graph.nodes.town:TownStep",
        calls="surefoot.town.sim.world.TownWorld.step",
        aliases=(),
    ),
    NodeType(
        name="ConflictStats",
        category="Town",
        summary="What the towns counted since it was last asked: quarrels, waiting, rivalry, needs, punctuality.",
        inputs=(
            Port(name="trigger", type=Type("trigger"), help="When: training_complete."),
            Port(name="sim_handle", type=Type("world"), help="Of Scenario.", sampled=True),
        ),
        outputs=(
            Port(name="counts", type=Type("dict"), help="By the names of telemetry 1.1."),
            Port(
                name="conflicts",
                type=Type("number"),
                help="Quarrels over a place in a queue, an agent and a hundred ticks.",
            ),
        ),
        runtime="surefoot.graph.nodes.town:ConflictStats",
        calls="surefoot.town.sim.world.TownWorld.take_counts",
        effect="state",
        clocks=_stats_clocks,
    ),
)
