"""Python as people lay it out: literals, long calls, fields."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

WIDTH = 116


def code_function(name: str, params: Mapping[str, Any]) -> list[str]:
    """A code node as a function whose last line gives its outputs."""
    source = str(params["source"]).strip("\n")
    lines = [f"    {line}" if line.strip() else "" for line in source.splitlines()] or ["    pass"]
    outputs = params["outputs"]
    gives = f"    return {', '.join(outputs)}" if outputs else "    return None"
    marks = "  # in the first tick only" if params["once"] else ""
    return [f"def {name}({', '.join(params['inputs'])}):{marks}", *lines, gives]


def tidy(value: Any) -> Any:
    """Schedules as the short text that stands for them."""
    if isinstance(value, dict) and value.get("kind") in ("linear", "cosine"):
        return f"{'lin' if value['kind'] == 'linear' else 'cos'}_{value['start']!r}_{value['end']!r}"
    if isinstance(value, list):
        return tuple(tuple(x) if isinstance(x, list) else x for x in value)
    return value


def literal(value: Any) -> str:
    """Python for a value of a parameter."""
    match value:
        case str():
            return json.dumps(value, ensure_ascii=False) if value.isprintable() else repr(value)
        case dict() if "kind" in value:
            return literal(json.dumps(value))
        case dict():
            return "{" + ", ".join(f"{literal(key)}: {literal(each)}" for key, each in value.items()) + "}"
        case tuple() | list():
            inside = ", ".join(literal(each) for each in value)
            return f"({inside},)" if len(value) == 1 else f"({inside})"
        case _:
            return repr(value)


def wrapped(line: str, indent: int, *, tight: str = "") -> list[str]:
    """A line, or, where it is too long, its outermost call with one argument a line."""
    depth = len(line) - len(line.lstrip())
    closing = line.rstrip()[-1:]
    opening = line.find({")": "(", "}": "{"}.get(closing, "("))
    if tight and len(line) <= WIDTH:
        return [line.replace("(", "").replace(")", "")]
    if len(line) + indent <= WIDTH or opening < 0 or closing not in (")", "}") or line.lstrip().startswith("#"):
        return [line]
    inside = line[opening + 1 : line.rstrip().rindex(closing)]
    pad = " " * depth
    return [line[: opening + 1], *(f"{pad}    {part}," for part in _arguments(inside)), f"{pad}{closing}"]


def _arguments(text: str) -> list[str]:
    """Split at commas that are in no bracket and no string."""
    parts, depth, inside, escaped = [""], 0, False, False
    for sign in text:
        if inside:
            escaped, inside = sign == "\\" and not escaped, not (sign == '"' and not escaped)
        elif sign == '"':
            inside = True
        elif sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth -= 1
        if sign == "," and depth == 0 and not inside:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts if part.strip()]


def annotation(value: Any) -> str:
    """The type of a field of Config with this value."""
    match value:
        case bool():
            return "bool"
        case int():
            return "int"
        case float():
            return "float"
        case str():
            return "str"
        case tuple():
            return "tuple[float, ...]" if any(isinstance(x, float) for x in value) else "tuple[int, ...]"
        case dict() if "kind" in value:
            return "str"
        case dict():
            return "dict"
        case _:
            return "float | None"
