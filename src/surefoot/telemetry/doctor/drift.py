"""Distance of a run's metrics from a baseline, in units of the baseline's own variation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from surefoot.errors import TelemetryError
from surefoot.telemetry.reader import RecordTable, load_curves

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
    """The distance of every update."""


def levels(path: Path | str) -> dict[str, BaselineLevel]:
    """Return the levels of a baseline: a record or log, or one JSON object of numbers (keys may begin with `baseline_`)."""
    if (numbers := _one_object(Path(path))) is not None:
        return {name: _level(np.array([x])) for name, x in numbers.items()}
    table = load_curves(path).updates
    if not len(table):
        raise TelemetryError(f"the baseline {path} has no updates; pass a record, a log, or a JSON object of numbers")
    known = {name: column[np.isfinite(column)] for name, column in table.columns.items() if is_metric(name)}
    return {name: _level(values) for name, values in known.items() if len(values)}


def is_metric(name: str) -> bool:
    """Return False for counters, ids, timings and ranges, whose distance from a baseline means nothing."""
    return (
        name not in CLOCKS and not name.startswith(("seconds.", "nonfinite.")) and not name.endswith((".min", ".max"))
    )


def drift(updates: RecordTable, baseline: dict[str, BaselineLevel]) -> list[MetricDrift]:
    """Return the drift of every metric that both have, the largest first."""
    drifts: list[MetricDrift] = []
    for name, level in baseline.items():
        column = updates[name]
        known = np.flatnonzero(np.isfinite(column))
        if not len(known):
            continue
        rows = (column - level.median) / level.scale
        worst = known[np.argmax(np.abs(rows[known]))]
        drifts.append(
            MetricDrift(
                name=name,
                level=level,
                latest=float(rows[known[-1]]),
                worst=float(rows[worst]),
                worst_update=int(updates.updates[worst]),
                worst_value=float(column[worst]),
                rows=rows,
            )
        )
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
