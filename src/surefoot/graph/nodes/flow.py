"""Merging and splitting: OR in its three modes, batches of several environments, sub-graphs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surefoot.graph.nodes.catalogue import declare
from surefoot.graph.spec.declare import Misfit, Types
from surefoot.graph.spec.types import ANY, CONST, TICK, Clock, Type, may_meet, misfit, when


def _or(params: Mapping[str, Any], given: Mapping[str, Type]) -> Types:
    names = list(given)
    if len(names) < 2:
        raise Misfit(
            "a" if "a" not in given else "b", "an OR merges two sources or more; connect another, or take it out"
        )
    if params["mode"] == "fby" and set(names) != {"a", "b"}:
        raise Misfit("c", "in mode fby there is a first value (a) and what follows (b), nothing else")
    known = [(name, type) for name, type in given.items() if type.kind != "any"]
    for name, type in known[1:]:
        why = misfit(type, known[0][1])
        if why is not None:
            raise Misfit(
                name, f"{known[0][0]} is {known[0][1]} and {name} is {type}: {why}; both sides of an OR must be alike"
            )
    return {"output": known[0][1] if known else ANY}


def _or_clocks(params: Mapping[str, Any], given: Mapping[str, Clock]) -> tuple[Clock, dict[str, Clock]]:
    mode = params["mode"]
    if mode == "fby":
        if "b" not in given:
            return TICK, {"output": TICK}
        first = given.get("a", CONST)
        if first.kind not in ("once", "const"):
            raise Misfit(
                "a", f"in mode fby, a is the first value; it comes {first}: take it from an Environment or a constant"
            )
        return TICK, {"output": given["b"] if given["b"].kind != "once" else TICK}
    clocks = list(given.items())
    if mode == "priority" and not params["queue"]:
        for i, (name, clock) in enumerate(clocks):
            for other, its in clocks[i + 1 :]:
                if may_meet(clock, its):
                    raise Misfit(
                        other,
                        f"{name} ({clock}) and {other} ({its}) can both come in one tick and one would have to be dropped; set "
                        "queue to true to keep both, one after the other",
                    )
    rate = sum(clock.rate for _, clock in clocks if clock.kind != "when")
    if rate > 1.0:
        raise Misfit(
            clocks[-1][0],
            f"{rate:g} values come in for each that can go out, so they would pile up; batch them instead",
        )
    merged = TICK if any(clock == TICK for _, clock in clocks) else when("output")
    return TICK, {"output": merged}


def _or_lint(params: Mapping[str, Any], given: Mapping[str, Type]) -> list[tuple[str, str]]:
    if params["mode"] != "arrival":
        return []
    return [
        ("mode", "arrival takes what comes first in real time; across processes two runs may differ in their digits")
    ]


def _batch(params: Mapping[str, Any], given: Mapping[str, Type]) -> Types:
    known = [type for type in given.values() if type.kind != "any"]
    if not known:
        return {"output": ANY}
    first, streams = known[0], 0
    for name, type in given.items():
        rows = type.parts[0][2][0] if type.parts else type.shape[0] if type.shape else None
        if not isinstance(rows, int):
            return {"output": Type(first.kind, first.dtype, tags=first.tags)}
        if type.kind != first.kind or type.dtype != first.dtype or _rows(type, 0) != _rows(first, 0):
            raise Misfit(name, f"{type} cannot be put beside {first}; all inputs of a batch have rows of one form")
        streams += rows
    return {"output": _rows(first, streams)}


def _rows(type: Type, streams: int) -> Type:
    parts = None if type.parts is None else tuple((n, d, (streams, *s[1:])) for n, d, s in type.parts)
    shape = None if type.shape is None else (streams, *type.shape[1:])
    return Type(type.kind, type.dtype, shape, parts, type.tags)


def _split(params: Mapping[str, Any], given: Mapping[str, Type]) -> Types:
    value, sizes = given.get("value", ANY), params["sizes"]
    if not 2 <= len(sizes) <= len(LETTERS):
        raise Misfit("sizes", f"sizes has {len(sizes)} numbers; a split has two to {len(LETTERS)} outputs")
    rows = value.parts[0][2][0] if value.parts else value.shape[0] if value.shape else None
    if isinstance(rows, int) and rows != sum(sizes):
        raise Misfit("sizes", f"sizes is {list(sizes)}, {sum(sizes)} in all, but there are {rows} rows to split")
    return {letter: _rows(value, size) for letter, size in zip(LETTERS, sizes, strict=False)}


LETTERS = tuple("abcdefgh")


NODES = declare(
    "flow",
    OR={"infer": _or, "clocks": _or_clocks, "lint": _or_lint},
    Batch={"infer": _batch},
    Split={"infer": _split},
)
