"""Distance of a run's metrics from a baseline, in units of the baseline's own variation."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from surefoot.errors import TelemetryError
from surefoot.telemetry.reader import load_curves
from surefoot.telemetry.record_table import update_row

# The standard deviation of a normal distribution is 1.4826 times its median absolute deviation.
_MAD_TO_SIGMA = 1.4826
# The smallest unit: 0.1 % of the baseline's median, and at least 1e-6, so that a constant baseline does not divide by zero.
_FLOOR = 1e-3
# Counters and settings: their distance from a baseline does not measure quality.
CLOCKS = frozenset(
    ("epoch", "cycle_id", "log_stream_offset", "samples", "minibatches", "rollout_ticks", "covers", "lr", "temperature")
)


@dataclass(frozen=True, slots=True)
class BaselineLevel:
    """Median and variation of a metric in the baseline."""

    median: float
    scale: float
    """1.4826 times the median absolute deviation; never 0."""


@dataclass(frozen=True, slots=True)
class MetricDrift:
    """The distance of one metric from the baseline."""

    name: str
    level: BaselineLevel
    latest: float
    """Distance of the last update, in units of `level.scale`, as is `worst`."""
    worst: float
    worst_update: int
    worst_value: float
    rows: np.ndarray
    """The distance of each of the last updates, at most `MOST_ROWS`; NaN where an update does not have the metric."""


# Updates of which the distances are kept, and of which a baseline's median is taken: enough for a plot, whatever the file's size.
MOST_ROWS = 10_000


def levels(path: Path | str) -> dict[str, BaselineLevel]:
    """Return the levels of a baseline: a record or log, or one JSON object of numbers (keys may begin with `baseline_`)."""
    if (numbers := _one_object(Path(path))) is not None:
        return {name: _level(np.array([x])) for name, x in numbers.items()}
    sample = _Sample()
    load_curves(path, take=lambda update, _: sample.add(update_row(update)))
    if not sample.rows:
        raise TelemetryError(f"the baseline {path} has no updates; pass a record, a log, or a JSON object of numbers")
    values: dict[str, list[float]] = {}
    for row in sample.rows:
        for name, x in row.items():
            if x is not None and is_metric(name):
                values.setdefault(name, []).append(x)
    return {name: _level(np.array(numbers)) for name, numbers in values.items()}


class _Sample:
    """Rows at equal distances, at most `MOST_ROWS`: every row, then every second one, then every fourth."""

    def __init__(self) -> None:
        self.rows: list[dict[str, float | None]] = []
        self._count, self._stride = 0, 1

    def add(self, row: dict[str, float | None]) -> None:
        if self._count % self._stride == 0:
            self.rows.append(row)
            if len(self.rows) > MOST_ROWS:
                self.rows, self._stride = self.rows[::2], 2 * self._stride
        self._count += 1


def is_metric(name: str) -> bool:
    """Return False for counters, ids, timings and ranges, whose distance from a baseline means nothing."""
    return (
        name not in CLOCKS and not name.startswith(("seconds.", "nonfinite.")) and not name.endswith((".min", ".max"))
    )


class DriftMeter:
    """Take updates one by one; measure how far each metric that the baseline has is from it."""

    def __init__(self, baseline: dict[str, BaselineLevel]) -> None:
        self._baseline = baseline
        self._rows = {name: deque[float](maxlen=MOST_ROWS) for name in baseline}
        self._worst: dict[str, tuple[float, int, float]] = {}
        self._latest: dict[str, float] = {}

    def add(self, update: int, row: Mapping[str, float | None]) -> None:
        """Take the numbers of one update."""
        for name, level in self._baseline.items():
            x = row.get(name)
            distance = math.nan if x is None else (x - level.median) / level.scale
            self._rows[name].append(distance)
            if x is not None and math.isfinite(x):
                self._latest[name] = distance
                if name not in self._worst or abs(distance) > abs(self._worst[name][0]):
                    self._worst[name] = (distance, update, x)

    def drifts(self) -> list[MetricDrift]:
        """Return the drift of every metric that both have, the largest first."""
        drifts = [
            MetricDrift(name, self._baseline[name], self._latest[name], *worst, np.array(self._rows[name]))
            for name, worst in self._worst.items()
        ]
        return sorted(drifts, key=lambda each: -abs(each.worst))


def _level(values: np.ndarray) -> BaselineLevel:
    median = float(np.median(values))
    spread = _MAD_TO_SIGMA * float(np.median(np.abs(values - median)))
    return BaselineLevel(median, max(spread, _FLOOR * max(abs(median), _FLOOR)))


def _one_object(path: Path) -> dict[str, float] | None:
    """Return the numbers of a file that is a single JSON object and not a record; None for any other file."""
    if not path.is_file() or path.suffix == ".gz":
        return None
    try:
        raw: Any = msgspec.json.decode(path.read_bytes())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None  # several lines: a log
    if not isinstance(raw, dict) or "v" in raw or "telemetry_version" in raw or "loss_policy" in raw:
        return None
    pairs: dict[str, Any] = raw  # pyright: ignore[reportUnknownVariableType]  JSON's keys are strings
    numbers = {k: float(x) for k, x in pairs.items() if isinstance(x, int | float) and not isinstance(x, bool)}
    if not numbers:
        raise TelemetryError(
            f"the baseline {path} is a JSON object without numbers; write one such as baseline_reward_mean"
        )
    return numbers
