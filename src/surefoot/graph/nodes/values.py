"""Constants and arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surefoot.graph.nodes.catalogue import declare
from surefoot.graph.spec.declare import Types
from surefoot.graph.spec.types import ANY, TICK, Type, when


def _math(params: Mapping[str, Any], given: Mapping[str, Type]) -> Types:
    if params["operation"] in ("mean", "sum"):
        return {"result": Type("number")}
    known = [given[name] for name in ("a", "b") if name in given]
    arrays = [each for each in known if each.kind == "tensor"]
    if arrays:
        return {"result": Type("tensor", None, arrays[0].shape)}
    return {"result": Type("number") if all(each.kind in ("number", "flag") for each in known) else ANY}


NODES = declare(
    "values",
    Math={"infer": _math},
    Condition={"clocks": lambda params, given: (given.get("value", TICK), {"trigger": when("trigger")})},
)
