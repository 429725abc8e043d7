"""Settings that change during a run: by the share of the run that is over, or by the number of updates."""

from __future__ import annotations

import bisect
import itertools
import math
from dataclasses import dataclass

from surefoot.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Linear:
    """A straight line from `start` to `end` over the run."""

    start: float
    end: float = 0.0

    def __post_init__(self) -> None:
        _require_finite(self)


@dataclass(frozen=True, slots=True)
class Cosine:
    """Half a cosine from `start` to `end` over the run: flat at both ends, steepest in the middle."""

    start: float
    end: float = 0.0

    def __post_init__(self) -> None:
        _require_finite(self)


@dataclass(frozen=True, slots=True)
class StepDecay:
    """`start`, multiplied by `factor` after every `every` updates: start · factor^⌊updates / every⌋ (torch's StepLR)."""

    start: float
    every: int
    factor: float

    def __post_init__(self) -> None:
        _require_finite(self)
        if self.every < 1 or not 0 < self.factor <= 1:
            raise ConfigError(
                f"StepDecay has every={self.every} and factor={self.factor}; "
                "every must be at least 1 and factor above 0 and at most 1"
            )


@dataclass(frozen=True, slots=True)
class Piecewise:
    """Straight lines between (progress, value) points; constant before the first and after the last."""

    points: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        progress = [point[0] for point in self.points]
        rising = all(a < b for a, b in itertools.pairwise(progress))
        if not progress or not rising or not all(0 <= x <= 1 for x in progress):
            raise ConfigError(f"Piecewise has points at {progress[:5]}; it needs one or more, rising, from 0 to 1")
        for x, value in self.points:
            if not math.isfinite(value):
                raise ConfigError(f"Piecewise has value at {x:g} {value}; it must be finite")


Schedule = Linear | Cosine | StepDecay | Piecewise


def value_at(knob: float | Schedule, *, progress: float, updates: int) -> float:
    """Return the value of a setting at `progress` (clamped to 0 … 1) of the run and after `updates` updates."""
    if isinstance(knob, float):  # the usual case, first because every update reads a dozen of them
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
            right = bisect.bisect_left(points, progress, key=lambda point: point[0])
            if right in (0, len(points)):
                return points[min(right, len(points) - 1)][1]
            (p0, v0), (p1, v1) = points[right - 1], points[right]
            share = (progress - p0) / (p1 - p0)
            return (1.0 - share) * v0 + share * v1
        case _:
            return knob


def _require_finite(schedule: Linear | Cosine | StepDecay) -> None:
    for name in schedule.__slots__:
        if not math.isfinite(value := getattr(schedule, name)):
            raise ConfigError(f"{type(schedule).__name__} has {name} {value}; it must be finite")
