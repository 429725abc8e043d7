"""Constants and arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surefoot.data.kinds import Interval, choice, flag, real, whole
from surefoot.graph.nodes.param_kinds import text
from surefoot.graph.spec.declare import NodeType, Param, Port, Types
from surefoot.graph.spec.types import ANY, CONST, NUMBER, TABLE, TICK, TRIGGER, Type, tensor, when

OPERATIONS = (
    "add",
    "subtract",
    "multiply",
    "divide",
    "minimum",
    "maximum",
    "power",
    "mean",
    "sum",
    "abs",
    "negative",
    "sqrt",
    "exp",
    "log",
)


def _math(params: Mapping[str, Any], given: Mapping[str, Type]) -> Types:
    if params["operation"] in ("mean", "sum"):
        return {"result": Type("number")}
    known = [given[name] for name in ("a", "b") if name in given]
    arrays = [each for each in known if each.kind == "tensor"]
    if arrays:
        return {"result": Type("tensor", None, arrays[0].shape)}
    return {"result": Type("number") if all(each.kind in ("number", "flag") for each in known) else ANY}


def _constant(name: str, kind: Any, type: Type, default: Any) -> NodeType:
    return NodeType(
        name=name,
        category="Values",
        summary="A value that stays the same.",
        params=(Param("value", kind, "The value.", default),),
        outputs=(Port("value", type, "It."),),
        source=CONST,
    )


NODES = (
    _constant("FloatConstant", real(Interval()), Type("number", "float"), 0.0),
    _constant("IntConstant", whole(Interval(-(2**53), 2**53)), Type("number"), 0),
    _constant("StringConstant", text(1000), Type("text"), ""),
    _constant("FlagConstant", flag(), Type("flag"), False),
    NodeType(
        name="Math",
        category="Values",
        summary="Arithmetic on numbers and arrays, entry by entry; mean and sum make one number of an array.",
        inputs=(
            Port("a", tensor(), "The first number or array."),
            Port("b", tensor(), "The second, where there are two.", optional=True),
        ),
        params=(
            Param("operation", choice(*OPERATIONS), "What is done.", "add"),
            Param("other", real(Interval()), "The second number where b is not connected.", 0.0),
        ),
        outputs=(Port("result", tensor(), "What comes of it."),),
        calls="numpy",
        infer=_math,
    ),
    NodeType(
        name="Pick",
        category="Values",
        summary="One number out of a table, such as approx_kl out of loss_info.",
        inputs=(Port("table", TABLE, "By name."),),
        params=(Param("key", text(100), "Which."),),
        outputs=(Port("value", NUMBER, "Its value."),),
    ),
    NodeType(
        name="Condition",
        category="Values",
        summary="A trigger that comes when a number is beyond a limit.",
        inputs=(Port("value", NUMBER, "The number."),),
        params=(
            Param("test", choice("above", "below"), "Which side of the limit.", "above"),
            Param("limit", real(Interval()), "The limit.", 0.0),
        ),
        outputs=(Port("trigger", TRIGGER, "Comes when it is so."),),
        clocks=lambda params, given: (given.get("value", TICK), {"trigger": when("trigger")}),
    ),
)
