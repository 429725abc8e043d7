"""Type and clock inference of OR, Batch and Split, and of arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from surefoot.graph.nodes.catalogue import declare
from surefoot.graph.spec.declare import Misfit, Types
from surefoot.graph.spec.types import ANY, CONST, TICK, Clock, Type, may_meet, misfit, when

# Eight ports per box; more environments need a second Batch behind the first.
LETTERS = tuple("abcdefgh")


def _or(params: Mapping[str, Any], inputs: Mapping[str, Type]) -> Types:
    if len(inputs) < 2:
        port = "a" if "a" not in inputs else "b"
        raise Misfit(port, "an OR merges two or more sources; connect another one, or remove the OR")
    if params["mode"] == "fby" and set(inputs) != {"a", "b"}:
        raise Misfit("c", "in mode fby, a is the first value and b the following ones; disconnect c")
    # Inputs behind a delay have no type in the first pass of the inference.
    known = [(name, type) for name, type in inputs.items() if type.kind != "any"]
    for name, type in known[1:]:
        first, expected = known[0]
        if (why := misfit(type, expected)) is not None:
            message = f"{first} is {expected} and {name} is {type}: {why}; the inputs of an OR must have the same type"
            raise Misfit(name, message)
    return {"output": known[0][1] if known else ANY}


def _or_clocks(params: Mapping[str, Any], inputs: Mapping[str, Clock]) -> tuple[Clock, dict[str, Clock]]:
    if params["mode"] == "fby":
        if "b" not in inputs:
            return TICK, {"output": TICK}
        first = inputs.get("a", CONST)
        if first.kind not in ("once", "const"):
            message = (
                f"in mode fby, a is the first value, but its clock is {first}; connect an Environment or a constant"
            )
            raise Misfit("a", message)
        return TICK, {"output": inputs["b"] if inputs["b"].kind != "once" else TICK}
    clocks = list(inputs.items())
    if params["mode"] == "priority" and not params["queue"]:
        for i, (name, clock) in enumerate(clocks):
            for other, other_clock in clocks[i + 1 :]:
                if may_meet(clock, other_clock):
                    raise Misfit(
                        other,
                        f"{name} ({clock}) and {other} ({other_clock}) can have a value in the same tick and one would be "
                        "lost; set queue to true to deliver both, one after the other",
                    )
    # More values in than out would fill the queue without bound. `when` has no known rate.
    rate = sum(clock.rate for _, clock in clocks if clock.kind != "when")
    if rate > 1.0:
        message = f"{rate:g} values arrive per value that leaves, so they would pile up; use a Batch instead"
        raise Misfit(clocks[-1][0], message)
    merged = TICK if any(clock == TICK for _, clock in clocks) else when("output")
    return TICK, {"output": merged}


def _or_lint(params: Mapping[str, Any], inputs: Mapping[str, Type]) -> list[tuple[str, str]]:
    if params["mode"] != "arrival":
        return []
    return [("mode", "arrival depends on real time, so two runs across processes can differ in their digits")]


def _batch(params: Mapping[str, Any], inputs: Mapping[str, Type]) -> Types:
    known = [type for type in inputs.values() if type.kind != "any"]
    if not known:
        return {"output": ANY}
    first, streams = known[0], 0
    for name, type in inputs.items():
        rows = _rows(type)
        if not isinstance(rows, int):
            return {"output": Type(first.kind, first.dtype, tags=first.tags)}
        if type.kind != first.kind or type.dtype != first.dtype or _with_rows(type, 0) != _with_rows(first, 0):
            raise Misfit(name, f"{type} cannot be batched with {first}; all inputs of a Batch must have the same rows")
        streams += rows
    return {"output": _with_rows(first, streams)}


def _rows(type: Type) -> int | str | None:
    return type.parts[0][2][0] if type.parts else type.shape[0] if type.shape else None


def _with_rows(type: Type, rows: int) -> Type:
    parts = None if type.parts is None else tuple((n, d, (rows, *s[1:])) for n, d, s in type.parts)
    shape = None if type.shape is None else (rows, *type.shape[1:])
    return replace(type, shape=shape, parts=parts)


def _split(params: Mapping[str, Any], inputs: Mapping[str, Type]) -> Types:
    value, sizes = inputs.get("value", ANY), params["sizes"]
    if not 2 <= len(sizes) <= len(LETTERS):
        raise Misfit("sizes", f"sizes has {len(sizes)} numbers; a Split has two to {len(LETTERS)} outputs")
    rows = _rows(value)
    if isinstance(rows, int) and rows != sum(sizes):
        raise Misfit("sizes", f"sizes is {list(sizes)}, {sum(sizes)} in total, but the value has {rows} rows")
    return {letter: _with_rows(value, size) for letter, size in zip(LETTERS, sizes, strict=False)}


def _math(params: Mapping[str, Any], inputs: Mapping[str, Type]) -> Types:
    if params["operation"] in ("mean", "sum"):
        return {"result": Type("number")}
    known = [inputs[name] for name in ("a", "b") if name in inputs]
    arrays = [each for each in known if each.kind == "tensor"]
    if arrays:
        return {"result": Type("tensor", None, arrays[0].shape)}
    return {"result": Type("number") if all(each.kind in ("number", "flag") for each in known) else ANY}


NODES = declare(
    "flow",
    OR={"infer": _or, "clocks": _or_clocks, "lint": _or_lint},
    Batch={"infer": _batch},
    Split={"infer": _split},
    Math={"infer": _math},
    Condition={"clocks": lambda params, inputs: (inputs.get("value", TICK), {"trigger": when("trigger")})},
)
