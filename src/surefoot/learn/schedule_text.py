"""Reads and writes schedules as text and JSON, and samples SB3's callables."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from surefoot.data.kinds import as_mapping, number, whole_number
from surefoot.errors import ConfigError
from surefoot.learn.schedule import Cosine, Linear, Piecewise, Schedule, StepDecay

# Points at which a callable is read: 0.1 % of a run apart, and still a small list in a checkpoint.
SAMPLES_OF_A_CALLABLE = 1001


def extremes(knob: float | Schedule) -> tuple[float, float]:
    """Return the lowest and the highest value that the setting can have."""
    match knob:
        case Linear(start, end) | Cosine(start, end):
            return min(start, end), max(start, end)
        case StepDecay(start):
            return min(start, 0.0), max(start, 0.0)
        case Piecewise(points):
            values = [value for _, value in points]
            return min(values), max(values)
        case _:
            return knob, knob


def parse_schedule(value: Any) -> float | Schedule:
    """Return the number or schedule that `value` stands for.

    Accepts numbers (as text too), schedules, the zoo's "lin_3e-4" (down to 0) and "lin_3e-4_1e-5", "cos_3e-4" likewise,
    points of straight lines as "0:3e-4,0.5:3e-4,1:0", the JSON of `schedule_to_json`, and SB3's callables of
    `progress_remaining`, which falls from 1 to 0. A callable cannot be saved, so it is sampled at 1001 evenly spaced points
    and becomes a `Piecewise`: jumps turn into short ramps.
    """
    if isinstance(value, Linear | Cosine | StepDecay | Piecewise):
        return value
    try:
        if isinstance(value, str):
            return _from_text(value.strip())
        if (spec := as_mapping(value)) is not None:
            return _from_json(spec)
        if callable(value):
            return _from_callable(value)
        return number(value)
    # A ConfigError names the cause already; it is a ValueError too.
    except ConfigError:
        raise
    except (KeyError, TypeError, ValueError) as why:
        raise ConfigError(
            f"cannot read {value!r} as a number or a schedule; write 3e-4, lin_3e-4, lin_3e-4_1e-5, cos_3e-4, "
            '0:3e-4,1:0 (progress:value), {"kind": "step", "start": 3e-4, "every": 100, "factor": 0.9} '
            "or a callable of progress_remaining"
        ) from why


def schedule_to_json(knob: float | Schedule) -> float | dict[str, Any]:
    """Return a JSON value that `parse_schedule` turns back into an equal setting."""
    match knob:
        case Linear(start, end):
            return {"kind": "linear", "start": start, "end": end}
        case Cosine(start, end):
            return {"kind": "cosine", "start": start, "end": end}
        case StepDecay(start, every, factor):
            return {"kind": "step", "start": start, "every": every, "factor": factor}
        case Piecewise(points):
            return {"kind": "piecewise", "points": [list(point) for point in points]}
        case _:
            return knob


def as_zoo_text(plain: Any) -> Any:
    """Return the JSON of a linear schedule as RL Zoo's text, such as lin_3e-4; any other value unchanged."""
    match plain:
        case {"kind": "linear", "start": start, "end": end}:
            return f"lin_{start:g}" + (f"_{end:g}" if end else "")
        case _:
            return plain


def _from_text(text: str) -> float | Schedule:
    if text.startswith(("lin_", "cos_")):
        return (Linear if text.startswith("lin_") else Cosine)(*(float(part) for part in text[4:].split("_")))
    if text.startswith("{"):
        return parse_schedule(json.loads(text))
    if ":" in text:
        pairs = (point.split(":") for point in text.split(","))
        return Piecewise(tuple((float(progress), float(value)) for progress, value in pairs))
    return float(text)


def _from_json(spec: Mapping[str, Any]) -> Schedule:
    match spec.get("kind"):
        case "linear":
            return Linear(number(spec["start"]), number(spec.get("end", 0.0)))
        case "cosine":
            return Cosine(number(spec["start"]), number(spec.get("end", 0.0)))
        case "step":
            return StepDecay(number(spec["start"]), whole_number(spec["every"]), number(spec["factor"]))
        case "piecewise":
            return Piecewise(tuple((number(progress), number(value)) for progress, value in spec["points"]))
        case kind:
            raise ConfigError(f"unknown schedule kind {kind!r}; known kinds are linear, cosine, step, piecewise")


def _from_callable(function: Callable[[float], Any]) -> Piecewise:
    last = SAMPLES_OF_A_CALLABLE - 1
    try:
        return Piecewise(tuple((i / last, number(function((last - i) / last))) for i in range(last + 1)))
    except ConfigError:
        raise
    except Exception as why:
        raise ConfigError(
            f"the schedule {function!r} failed ({why}); it is called with progress_remaining, 1 down to 0, "
            "and must return a number"
        ) from why
