"""The numbers of an update: unit, meaning, healthy range, and what other libraries call them."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

import msgspec


@dataclass(frozen=True, slots=True)
class Alias:
    """Another library's name for a number, and what ours is multiplied by to be theirs.

    SB3 reports the whole mean squared error of the critic, CleanRL and we half of it: its `scale` is 2.
    """

    tag: str
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Metric:
    """What a number of an update means. A value outside `healthy` is worth a look, not an error."""

    unit: str
    meaning: str
    healthy: tuple[float, float] | None = None
    sb3: Alias | None = None
    cleanrl: Alias | None = None


METRICS = msgspec.json.decode((files("surefoot.telemetry") / "metrics.json").read_bytes(), type=dict[str, Metric])
"""Every number of `UpdateReport.metrics()`. The bands are where the doctor's warnings begin."""
