"""Tools chosen for queries: a source of questions, an encoder, a policy, tools that really run, a reward, and learning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surefoot.graph.nodes.catalogue import declare
from surefoot.graph.spec.declare import Types
from surefoot.graph.spec.types import (
    CONST,
    ONCE,
    TICK,
    Clock,
    Type,
    tensor,
    when,
)


def _rows(given: Mapping[str, Type]) -> int | str:
    shape = given.get("queries", Type("queries")).shape
    return shape[0] if shape else "N"


def _rewarded(params: Mapping[str, Any], given: Mapping[str, Type]) -> Types:
    rows = _rows(given)
    return {"rewards": tensor("float64", rows), "right": tensor("bool", rows)}


def _learned(params: Mapping[str, Any], given: Mapping[str, Clock]) -> tuple[Clock, dict[str, Clock]]:
    outputs = ("training_complete", "loss_info", "episodes", "learner")
    return TICK, dict.fromkeys(outputs, when("training_complete"))


NODES = declare(
    "tools",
    QuerySource={
        "infer": lambda params, given: {
            "queries": Type("queries", shape=(params["batch"],)),
            "held_out": Type("queries"),
        },
        "clocks": lambda params, given: (TICK, {"queries": TICK, "held_out": CONST}),
        "streams": lambda params: ("batch", 1),
    },
    QueryEncoder={
        "infer": lambda params, given: {"vectors": tensor("float32", _rows(given), "D")},
        "clocks": lambda params, given: (TICK, {"vectors": TICK, "encoder": CONST}),
    },
    ToolBox={"clocks": lambda params, given: (ONCE, {"toolbox": CONST})},
    ToolPolicy={"clocks": lambda params, given: (TICK, {"choices": TICK, "chooser": CONST})},
    ToolReward={"infer": _rewarded},
    ToolExam={
        "clocks": lambda params, given: (
            given.get("trigger", TICK),
            dict.fromkeys(("right", "nearest"), when("right")),
        ),
    },
    ToolTrainer={"clocks": _learned},
)
