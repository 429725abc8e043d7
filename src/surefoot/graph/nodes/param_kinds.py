"""Kinds of parameters that only nodes have. Graphs may come from untrusted files, so each kind states what it accepts."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from surefoot.data.kinds import Interval, Kind, as_list, as_mapping, flag, integer, number, whole_number
from surefoot.learn.schedule_text import parse_schedule, schedule_to_json

# Bounds of what a file may request: a million steps or rows, tensors of 10^7 entries (40 MB), 4096 bounds of an action.
COUNT = integer(Interval(1, 1_000_000))
MOST_ENTRIES = 10**7
MOST_NUMBERS = 4096
_ENV_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_\-./]{0,99}")
_FOLDER = re.compile(r"[A-Za-z0-9_.\-/]{1,200}")


def text(most: int = 200) -> Kind:
    """Return the kind of one line of text."""

    def accept(value: Any) -> str:
        if not isinstance(value, str) or len(value) > most or not value.isprintable():
            raise ValueError(f"{str(value)[:40]!r} is not a line of text")
        return value

    return Kind("text", f"a line of text, at most {most} characters", accept, str)


def _folder(value: Any) -> str:
    # A graph from elsewhere must not write outside the run's directory.
    if not isinstance(value, str) or not _FOLDER.fullmatch(value) or ".." in value.split("/") or value.startswith("/"):
        raise ValueError(f"{str(value)[:40]!r} is not below the run's directory")
    return value


def _env_id(value: Any) -> str:
    # module:Name would import a module and a path would load a library: both run code.
    if not isinstance(value, str) or not _ENV_ID.fullmatch(value) or ".." in value or value.endswith((".so", ".dylib")):
        raise ValueError(f"{str(value)[:40]!r} is not an environment id")
    return value


def _lines(value: Any) -> str:
    if not isinstance(value, str) or len(value) > 20_000:
        raise ValueError("not text")
    return value


def _size(value: Any) -> Any:
    parts = as_mapping(value)
    if parts is None:
        return _shape(value)
    if not parts or not all(isinstance(name, str) and name for name in parts):
        raise ValueError("no parts")
    return {str(name): _shape(size) for name, size in sorted(parts.items())}


def _shape(value: Any) -> int | tuple[int, ...]:
    sizes = as_list(value)
    if sizes is None:
        return COUNT.accept(value)
    if not 1 <= len(sizes) <= 4 or math.prod(whole_number(size) for size in sizes) > MOST_ENTRIES:
        raise ValueError("a shape has one to four sizes")
    return tuple(COUNT.accept(size) for size in sizes)


def _to_lists(value: Any) -> Any:
    """Return tuples as lists, at any depth of a dict."""
    if isinstance(value, dict):
        return {name: _to_lists(each) for name, each in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return list(value) if isinstance(value, tuple) else value  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _numbers(value: Any) -> float | tuple[float, ...]:
    many = as_list(value)
    values = [number(each) for each in ([value] if many is None else many)]
    if not values or len(values) > MOST_NUMBERS or not all(math.isfinite(each) for each in values):
        raise ValueError("not finite")
    return values[0] if many is None else tuple(values)


def _counts(value: Any) -> tuple[int, ...]:
    many = as_list(value)
    if not many or len(many) > 1024:
        raise ValueError("not a list")
    return tuple(COUNT.accept(each) for each in many)


def _names(value: Any) -> tuple[str, ...]:
    many = as_list(value)
    if many is None or len(many) > 64 or not all(isinstance(each, str) for each in many):
        raise ValueError("not a list of names")
    return tuple(many)


def _schedule(value: Any) -> Any:
    def of_remaining(remaining: float) -> Any:
        return value(1.0 - remaining)

    # A callable on a node takes the progress of the run; schedules of the library take what remains of it.
    return None if value is None else parse_schedule(of_remaining if callable(value) else value)


KINDS = {
    "bool": flag(),
    "count": COUNT,
    "counts": Kind("ints", "a list of whole numbers, each at least 1", _counts, json.loads, list),
    "env_id": Kind("text", "a Gymnasium id such as CartPole-v1; module:Name and paths are refused here", _env_id, str),
    "folder": Kind("text", "a folder below the run's directory, such as checkpoints", _folder, str),
    "lines": Kind("text", "text, at most 20,000 characters", _lines, str),
    "names": Kind("names", "a list of names", _names, json.loads, list),
    "numbers": Kind("numbers", "a finite number or a list of them", _numbers, json.loads, _to_lists),
    "schedule": Kind(
        "schedule | none",
        "a schedule such as lin_3e-4; or none",
        _schedule,
        lambda words: None if words.strip().lower() in ("none", "null", "") else words,
        lambda value: None if value is None else schedule_to_json(value),
    ),
    "size": Kind(
        "size",
        "a whole number, a list as [4, 84, 84], or sizes by part as {obs: 4, goal: 2}",
        _size,
        json.loads,
        _to_lists,
    ),
    "text": text(),
}
"""{name in the YAML files: kind}"""
