"""One policy above another: HighLevelPPO sets sub-goals, LowLevelPPO is paid for reaching them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from surefoot.graph.nodes.agent import NODES as AGENTS
from surefoot.graph.nodes.catalogue import declare
from surefoot.graph.spec.declare import Types
from surefoot.graph.spec.types import CONST, TICK, Clock, Type

GOAL = "goal"


def _manager_clocks(params: Mapping[str, Any], given: Mapping[str, Clock]) -> tuple[Clock, dict[str, Clock]]:
    later = given.get("trigger", TICK)
    return TICK, {"manager": CONST, "learned": later, "loss_info": later}


def _goals(params: Mapping[str, Any], given: Mapping[str, Type]) -> Types:
    world = given.get("sim_handle", Type("world"))
    size = 2 if params["goals"] == "rooms" else len(params["coordinates"])
    if world.parts is None:
        return {"sim_handle": world, "observations": Type("obs")}
    streams = world.parts[0][2][0]
    parts = tuple(sorted((*world.parts, (GOAL, "float32", (streams, size)))))
    return {
        "sim_handle": replace(world, parts=parts),
        "observations": Type("obs", parts=parts, tags=world.tags),
    }


NODES = declare(
    "hierarchy",
    HighLevelPPO={"clocks": _manager_clocks},
    SubGoal={
        "infer": _goals,
        "clocks": lambda params, given: (TICK, {"sim_handle": CONST, "observations": TICK}),
    },
)
NODES["LowLevelPPO"] = replace(
    AGENTS["PPOAgentNode"],
    name="LowLevelPPO",
    category="RL/Hierarchy",
    summary="The lower policy: an agent that sees its sub-goal beside everything else.",
    aliases=(),
)
