"""Text of generated Python: names, literals, annotations, wrapped lines."""

from __future__ import annotations

import ast
import builtins
import json
import keyword
from collections.abc import Mapping
from typing import Any

from surefoot.data.kinds import as_list
from surefoot.errors import GraphError

# Generated lines fit the 120 columns of the project with one more level of indentation.
WIDTH = 116
# Names that generated programs use themselves.
OURS = (
    *("config", "Config", "train", "tick", "rollouts", "dataclass", "partial", "annotations", "tyro", "NAME", "ABOUT"),
    *("main", "self"),
)


class Names:
    """Unique names for generated code: a name that is used or reserved gets a suffix."""

    def __init__(self, *used: str) -> None:
        self.used = {*used, *OURS, *dir(builtins), "_"}

    def new(self, wanted: str) -> str:
        """Return `wanted`, or a similar name that is free."""
        name, count = wanted, 1
        while name in self.used or keyword.iskeyword(name) or keyword.issoftkeyword(name) or name.startswith("__"):
            count += 1
            name = f"{wanted.lstrip('_') or 'x'}_{count}" if count > 2 or name.startswith("__") else f"{wanted}_"
        self.used.add(name)
        return name


def code_function(name: str, params: Mapping[str, Any]) -> list[str]:
    """Return a Code node as a function whose last line returns its outputs."""
    source = str(params["source"]).strip("\n")
    lines = [f"    {line}" if line.strip() else "" for line in source.splitlines()] or ["    pass"]
    outputs = params["outputs"]
    last = f"    return {', '.join(outputs)}" if outputs else "    return None"
    mark = "  # in the first tick only" if params["once"] else ""
    return [f"def {name}({', '.join(params['inputs'])}):{mark}", *lines, last]


def tidy(value: Any) -> Any:
    """Return schedules as their short text, and lists as tuples."""
    if isinstance(value, dict) and value.get("kind") in ("linear", "cosine"):
        return f"{'lin' if value['kind'] == 'linear' else 'cos'}_{value['start']!r}_{value['end']!r}"
    if isinstance(value, list):
        return tuple(tuple(x) if isinstance(x, list) else x for x in value)
    return value


def literal(value: Any) -> str:
    """Return the Python literal of a parameter value."""
    match value:
        # Double quotes, as the formatter of the project writes them.
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
    """Return a line; if it is too long, its outermost call with one argument per line."""
    # A simple layout is enough: generated lines have at most one long call.
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
    """Split at commas outside of brackets and strings."""
    parts, depth, inside, escaped = [""], 0, False, False
    for char in text:
        if inside:
            escaped, inside = char == "\\" and not escaped, not (char == '"' and not escaped)
        elif char == '"':
            inside = True
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        if char == "," and depth == 0 and not inside:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts if part.strip()]


def annotation(value: Any) -> str:
    """Return the annotation of a Config field with this value."""
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


def read_literal(value: ast.expr, what: str) -> Any:
    """Return the value of a literal, with tuples as lists; raise `GraphError` for any other expression."""
    try:
        result = ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as why:
        raise GraphError(
            f"line {value.lineno}: {what} is {ast.unparse(value)[:60]!r}; only literal values are read, nothing is run"
        ) from why
    # Parameters are lists in JSON; scripts write tuples.
    many = as_list(result)
    return result if many is None else list(many)
