"""Sorts of parameters that only nodes have, and parameters that are knobs of a config under another name."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from surefoot.data.kinds import Interval, Kind, as_list, as_mapping, integer, number, whole_number
from surefoot.learn.schedule_text import parse_schedule, schedule_to_json

MOST = 1_000_000
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_\-./]{0,99}")
COUNT = integer(Interval(1, MOST))


def text(most: int = 200) -> Kind:
    """Any text of one line."""

    def accept(value: Any) -> str:
        if not isinstance(value, str) or len(value) > most or not value.isprintable():
            raise ValueError(f"{str(value)[:40]!r} is not a line of text")
        return value

    return Kind("text", f"a line of text, at most {most} characters", accept, str)


def folder() -> Kind:
    """A directory below the run's own; a graph that came from elsewhere must not reach out of it."""

    def accept(value: Any) -> str:
        parts = value.split("/") if isinstance(value, str) else [".."]
        if not re.fullmatch(r"[A-Za-z0-9_.\-/]{1,200}", str(value)) or ".." in parts or str(value).startswith("/"):
            raise ValueError(f"{str(value)[:40]!r} leads elsewhere")
        return value

    return Kind("text", "a folder below the run's directory, such as checkpoints", accept, str)


def env_id() -> Kind:
    """The id of an environment; nothing that would import a module or load a file."""

    def accept(value: Any) -> str:
        if not isinstance(value, str) or not _ID.fullmatch(value) or ".." in value or value.endswith((".so", ".dylib")):
            raise ValueError(f"{str(value)[:40]!r} is no id")
        return value

    return Kind("text", "a Gymnasium id such as CartPole-v1; module:Name and paths are refused here", accept, str)


def lines(most: int = 20_000) -> Kind:
    """Any text."""

    def accept(value: Any) -> str:
        if not isinstance(value, str) or len(value) > most:
            raise ValueError("not text")
        return value

    return Kind("text", f"text, at most {most:,} characters", accept, str)


def shape() -> Kind:
    """A size: a whole number, a list of them, or a dict of those by the parts' names."""
    legal = "a whole number, a list as [4, 84, 84], or sizes by part as {obs: 4, goal: 2}"

    def accept(value: Any) -> Any:
        parts = as_mapping(value)
        if parts is not None:
            if not parts or not all(isinstance(name, str) and name for name in parts):
                raise ValueError("no parts")
            return {str(name): one(size) for name, size in sorted(parts.items())}
        return one(value)

    def one(value: Any) -> int | tuple[int, ...]:
        sizes = as_list(value)
        if sizes is None:
            return COUNT.accept(value)
        if not 1 <= len(sizes) <= 4 or math.prod(whole_number(size) for size in sizes) > 10**7:
            raise ValueError("a shape has one to four sizes")
        return tuple(COUNT.accept(size) for size in sizes)

    def to_json(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: to_json(size) for name, size in value.items()}  # pyright: ignore[reportUnknownVariableType]
        return list(value) if isinstance(value, tuple) else value  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]

    return Kind("size", legal, accept, json.loads, to_json)


def numbers() -> Kind:
    """A number, or a list of numbers."""

    def accept(value: Any) -> float | tuple[float, ...]:
        many = as_list(value)
        found = [number(each) for each in ([value] if many is None else many)]
        if not found or len(found) > 4096 or not all(math.isfinite(each) for each in found):
            raise ValueError("not finite")
        return found[0] if many is None else tuple(found)

    return Kind(
        "numbers",
        "a finite number or a list of them",
        accept,
        json.loads,
        _as_json,
    )


def counts() -> Kind:
    """A list of whole numbers."""

    def accept(value: Any) -> tuple[int, ...]:
        many = as_list(value)
        if not many or len(many) > 1024:
            raise ValueError("not a list")
        return tuple(COUNT.accept(each) for each in many)

    return Kind("ints", "a list of whole numbers, each at least 1", accept, json.loads, list)


def names() -> Kind:
    """A list of port names."""

    def accept(value: Any) -> tuple[str, ...]:
        many = as_list(value)
        if many is None or len(many) > 64 or not all(isinstance(each, str) for each in many):
            raise ValueError("not a list of names")
        return tuple(many)

    return Kind("names", "a list of names", accept, json.loads, list)


def schedule() -> Kind:
    """A schedule or none; a callable takes the share of the run that is over."""

    def accept(value: Any) -> Any:
        def of_rest(left: float) -> Any:  # schedules are functions of what is left of the run
            return value(1.0 - left)

        return None if value is None else parse_schedule(of_rest if callable(value) else value)

    return Kind(
        "schedule | none",
        "a schedule such as lin_3e-4; or none",
        accept,
        lambda words: None if words.strip().lower() in ("none", "null", "") else words,
        lambda value: None if value is None else schedule_to_json(value),
    )


def _as_json(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
