"""How far a run's numbers lie from a baseline's, in units of how much the baseline itself varies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from surefoot.errors import TelemetryError
from surefoot.telemetry.reader import RecordTable, load_curves

_MAD_TO_SIGMA = 1.4826
_FLOOR = 1e-3
"""A baseline that hardly varies: a thousandth of its size, or a millionth, is one unit."""
CLOCKS = frozenset(
    ("epoch", "cycle_id", "log_stream_offset", "samples", "minibatches", "rollout_ticks", "covers", "lr", "temperature")
)
"""Numbers that say where or how, not how well."""


@dataclass(frozen=True, slots=True)
class BaselineLevel:
    """Where a baseline's number lies, and how much it varies."""

    median: float
    scale: float
    """1.4826 MAD, which is the standard deviation of a normal number; never 0."""


@dataclass(frozen=True, slots=True)
class MetricDrift:
    """One number's distance from the baseline."""

    name: str
    level: BaselineLevel
    latest: float
    """Of the last update, in units of `level.scale`; so is `worst`."""
    worst: float
    worst_update: int
    worst_value: float
    rows: np.ndarray
    """The distance of every update."""


def levels(path: Path | str) -> dict[str, BaselineLevel]:
    """The levels of a baseline: a record or log, or one JSON object of numbers (keys may begin with `baseline_`)."""
    if (numbers := _one_object(Path(path))) is not None:
        return {name: _level(np.array([x])) for name, x in numbers.items()}
    table = load_curves(path).updates
    if not len(table):
        raise TelemetryError(f"the baseline {path} has no updates; give a record, a log, or a JSON object of numbers")
    found: dict[str, BaselineLevel] = {}
    for name, column in table.columns.items():
        values = column[np.isfinite(column)]
        if len(values) and is_metric(name):
            found[name] = _level(values)
    return found


def is_metric(name: str) -> bool:
    """False for clocks, ids, timings and ranges, whose distance from a baseline says nothing."""
    return (
        name not in CLOCKS and not name.startswith(("seconds.", "nonfinite.")) and not name.endswith((".min", ".max"))
    )


def drift(updates: RecordTable, baseline: dict[str, BaselineLevel]) -> list[MetricDrift]:
    """Every number that both have, the farthest first."""
    found: list[MetricDrift] = []
    for name, level in baseline.items():
        column = updates[name]
        known = np.flatnonzero(np.isfinite(column))
        if not len(known):
            continue
        rows = (column - level.median) / level.scale
        worst = known[np.argmax(np.abs(rows[known]))]
        found.append(
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
    return sorted(found, key=lambda each: -abs(each.worst))


def _level(values: np.ndarray) -> BaselineLevel:
    median = float(np.median(values))
    spread = _MAD_TO_SIGMA * float(np.median(np.abs(values - median)))
    return BaselineLevel(median, max(spread, _FLOOR * max(abs(median), _FLOOR)))


def _one_object(path: Path) -> dict[str, float] | None:
    """The numbers of a file that is a single JSON object and no record; None if it is something else."""
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
        raise TelemetryError(f"the baseline {path} is a JSON object without numbers; baseline_reward_mean is one")
    return numbers
