"""Knobs that move while a run goes on: by the share of the run that is behind us, or by the count of updates."""

from __future__ import annotations

import bisect
import itertools
import math
from dataclasses import dataclass

from surefoot.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Linear:
    """From `start` to `end` in a straight line over the whole run."""

    start: float
    end: float = 0.0

    def __post_init__(self) -> None:
        _require_finite("Linear", start=self.start, end=self.end)


@dataclass(frozen=True, slots=True)
class Cosine:
    """From `start` to `end` over the whole run along half a cosine: flat at both ends, steepest in the middle."""

    start: float
    end: float = 0.0

    def __post_init__(self) -> None:
        _require_finite("Cosine", start=self.start, end=self.end)


@dataclass(frozen=True, slots=True)
class StepDecay:
    """`start`, times `factor` after every `every` updates: start · factor^⌊updates / every⌋ (torch's StepLR)."""

    start: float
    every: int
    factor: float

    def __post_init__(self) -> None:
        _require_finite("StepDecay", start=self.start, factor=self.factor)
        if self.every < 1 or not 0 < self.factor <= 1:
            raise ConfigError(
                f"StepDecay has every={self.every} and factor={self.factor}; "
                "every must be at least 1 and factor above 0 and at most 1"
            )


@dataclass(frozen=True, slots=True)
class Piecewise:
    """Straight lines between (progress, value) points; held at the first and the last value outside them."""

    points: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        at = [progress for progress, _ in self.points]
        rising = all(a < b for a, b in itertools.pairwise(at))
        if not at or not rising or not all(0 <= progress <= 1 for progress in at):
            raise ConfigError(f"Piecewise has points at {at[:5]}; it needs one or more, rising, from 0 to 1")
        for progress, value in self.points:
            _require_finite("Piecewise", **{f"value at {progress:g}": value})


Schedule = Linear | Cosine | StepDecay | Piecewise


def value_at(knob: float | Schedule, *, progress: float, updates: int) -> float:
    """The knob's value when `progress` (0 to 1, held there) of the run and `updates` updates are behind us."""
    if isinstance(knob, float):  # the usual case, asked for a dozen times an update
        return knob
    progress = min(max(progress, 0.0), 1.0)
    match knob:
        case Linear(start, end):
            return (1.0 - progress) * start + progress * end
        case Cosine(start, end):
            left = 0.5 + 0.5 * math.cos(math.pi * progress)
            return left * start + (1.0 - left) * end
        case StepDecay(start, every, factor):
            return start * factor ** (updates // every)
        case Piecewise(points):
            return _between(points, progress)
        case _:
            return knob


def _between(points: tuple[tuple[float, float], ...], progress: float) -> float:
    right = bisect.bisect_left(points, progress, key=lambda point: point[0])
    if right == 0:
        return points[0][1]
    if right == len(points):
        return points[-1][1]
    (p0, v0), (p1, v1) = points[right - 1], points[right]
    share = (progress - p0) / (p1 - p0)
    return (1.0 - share) * v0 + share * v1


def _require_finite(owner: str, **values: float) -> None:
    for name, value in values.items():
        if not math.isfinite(value):
            raise ConfigError(f"{owner} has {name} {value}; it must be finite")
