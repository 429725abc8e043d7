"""Type and clock inference of the tool-selection nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surefoot.graph.nodes.catalogue import declare
from surefoot.graph.spec.declare import Types
from surefoot.graph.spec.types import CONST, ONCE, TICK, Clock, Type, tensor, when


def _rows(inputs: Mapping[str, Type]) -> int | str:
    shape = inputs.get("queries", Type("queries")).shape
    return shape[0] if shape else "N"


def _reward_types(params: Mapping[str, Any], inputs: Mapping[str, Type]) -> Types:
    rows = _rows(inputs)
    return {"rewards": tensor("float64", rows), "right": tensor("bool", rows)}


def _trainer_clocks(params: Mapping[str, Any], inputs: Mapping[str, Clock]) -> tuple[Clock, dict[str, Clock]]:
    outputs = ("training_complete", "loss_info", "episodes", "learner")
    return TICK, dict.fromkeys(outputs, when("training_complete"))


NODES = declare(
    "tools",
    QuerySource={
        "infer": lambda params, inputs: {
            "queries": Type("queries", shape=(params["batch"],)),
            "held_out": Type("queries"),
        },
        "clocks": lambda params, inputs: (TICK, {"queries": TICK, "held_out": CONST}),
        "streams": lambda params: ("batch", 1),
    },
    QueryEncoder={
        "infer": lambda params, inputs: {"vectors": tensor("float32", _rows(inputs), "D")},
        "clocks": lambda params, inputs: (TICK, {"vectors": TICK, "encoder": CONST}),
    },
    ToolBox={"clocks": lambda params, inputs: (ONCE, {"toolbox": CONST})},
    ToolPolicy={"clocks": lambda params, inputs: (TICK, {"choices": TICK, "chooser": CONST})},
    ToolReward={"infer": _reward_types},
    ToolExam={
        "clocks": lambda params, inputs: (
            inputs.get("trigger", TICK),
            dict.fromkeys(("right", "nearest"), when("right")),
        ),
    },
    ToolTrainer={"clocks": _trainer_clocks},
)
