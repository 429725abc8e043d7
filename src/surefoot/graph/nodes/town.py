"""Towns: a scenario with its towns side by side, a tick in all of them, and what they counted meanwhile."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from surefoot.data.kinds import Interval, choice, whole
from surefoot.data.spaces import Discrete
from surefoot.graph.nodes.worlds import STEP, parts_of
from surefoot.graph.spec.declare import NodeType, Param, Port, Types
from surefoot.graph.spec.types import CONST, NUMBER, OBS, ONCE, TABLE, TRIGGER, WORLD, Clock, Type, when
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
            Param("scenario", choice(*shipped()), "Which; `surefoot town scenarios` tells of each."),
            Param("towns", whole(Interval(1, 65_536)), "Towns side by side.", 64),
            Param(
                "observations",
                choice("scenario", *VARIANTS),
                "What agents see: as the scenario says, features alone, or a map beside them.",
                "scenario",
            ),
        ),
        outputs=(
            Port("sim_handle", WORLD, "The towns themselves, for TownStep."),
            Port("observations", OBS, "What all agents see first; said once."),
        ),
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
        calls="surefoot.town.sim.world.TownWorld.step",
        aliases=(),
    ),
    NodeType(
        name="ConflictStats",
        category="Town",
        summary="What the towns counted since it was last asked: quarrels, waiting, rivalry, needs, punctuality.",
        inputs=(
            Port("trigger", TRIGGER, "When: training_complete."),
            Port("sim_handle", WORLD, "Of Scenario.", sampled=True),
        ),
        outputs=(
            Port("counts", TABLE, "By the names of telemetry 1.1."),
            Port("conflicts", NUMBER, "Quarrels over a place in a queue, an agent and a hundred ticks."),
        ),
        calls="surefoot.town.sim.world.TownWorld.take_counts",
        effect="state",
        clocks=_stats_clocks,
    ),
)
