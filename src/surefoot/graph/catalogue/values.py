"""Constants and arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surefoot.data.kinds import Interval, choice, flag, real, whole
from surefoot.graph.catalogue.kinds import text
from surefoot.graph.spec.declare import NodeType, Param, Port, Types
from surefoot.graph.spec.types import ANY, CONST, TICK, Type, tensor, when

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


def _constant(name: str, kind: Any, type: Type, default: Any, *aliases: str) -> NodeType:
    return NodeType(
        name=name,
        category="Values",
        summary="A value that stays the same.",
        params=(Param(name="value", kind=kind, help="The value.", default=default),),
        outputs=(Port(name="value", type=type, help="It."),),
        runtime="surefoot.graph.nodes.values:" + name,
        calls="",
        source=CONST,
        aliases=aliases,
    )


NODES = (
    _constant("FloatConstant", real(Interval()), Type("number", "float"), 0.0, "ConstantFloatNode"),
    _constant("IntConstant", whole(Interval(-(2**53), 2**53)), Type("number"), 0, "ConstantIntNode"),
    _constant("StringConstant", text(1000), Type("text"), "", "ConstantStringNode"),
    _constant("FlagConstant", flag(), Type("flag"), False),
    NodeType(
        name="Math",
        category="Values",
        summary="Arithmetic on numbers and arrays, entry by entry; mean and sum make one number of an array.",
        inputs=(
            Port(name="a", type=tensor(), help="The first number or array."),
            Port(name="b", type=tensor(), help="The second, where there are two.", optional=True),
        ),
        params=(
            Param(name="operation", kind=choice(*OPERATIONS), help="What is done.", default="add"),
            Param(name="other", kind=real(Interval()), help="The second number where b is not connected.", default=0.0),
        ),
        outputs=(Port(name="result", type=tensor(), help="What comes of it."),),
        runtime="surefoot.graph.nodes.values:Math",
        calls="numpy",
        infer=_math,
    ),
    NodeType(
        name="Pick",
        category="Values",
        summary="One number out of a table, such as approx_kl out of loss_info.",
        inputs=(Port(name="table", type=Type("dict"), help="By name."),),
        params=(Param(name="key", kind=text(100), help="Which."),),
        outputs=(Port(name="value", type=Type("number"), help="Its value."),),
        runtime="surefoot.graph.nodes.values:Pick",
        calls="",
    ),
    NodeType(
        name="Condition",
        category="Values",
        summary="A trigger that comes when a number is beyond a limit.",
        inputs=(Port(name="value", type=Type("number"), help="The number."),),
        params=(
            Param(name="test", kind=choice("above", "below"), help="Which side of the limit.", default="above"),
            Param(name="limit", kind=real(Interval()), help="The limit.", default=0.0),
        ),
        outputs=(Port(name="trigger", type=Type("trigger"), help="Comes when it is so."),),
        runtime="surefoot.graph.nodes.values:Condition",
        calls="",
        clocks=lambda params, given: (given.get("value", TICK), {"trigger": when("trigger")}),
    ),
)
