"""Metrics per update for the page's curves, thinned to what a screen can show."""

from __future__ import annotations

import math
import threading
from typing import Any

# Beyond this every second row is dropped: more points than pixels show nothing, and the shape stays.
MOST = 4000
PANELS = (
    "return",
    "approx_kl",
    "clip_fraction",
    "entropy",
    "explained_variance",
    "value_loss",
    "grad_norm",
    "first_ratio_error",
)
"""The metrics that the page draws. The others are in the record of the run: to round and send them would cost every update."""


class CurveBook:
    """One row per update; written by the run's thread, read by the event loop."""

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []
        self._new: list[dict[str, Any]] = []
        self._stride, self._count = 1, 0
        self._lock = threading.Lock()

    def add(self, metrics: dict[str, Any]) -> None:
        """Add the metrics of an update."""
        drawn = ((name, metrics.get(name)) for name in ("update", "env_steps", *PANELS))
        row = {name: rounded(value) for name, value in drawn if isinstance(value, int | float)}
        with self._lock:
            self._count += 1
            if self._count % self._stride == 0:
                self._rows.append(row)
            if len(self._rows) > MOST:
                self._rows, self._stride = self._rows[1::2], self._stride * 2
            self._new.append(row)

    def take(self) -> list[dict[str, Any]]:
        """Return the rows since the last call, at most 50: a tab that was asleep needs no more."""
        with self._lock:
            new, self._new = self._new[-50:], []
        return new

    def to_json(self) -> list[dict[str, Any]]:
        """Return all rows."""
        with self._lock:
            return list(self._rows)


def rounded(value: float | None) -> float | int | None:
    """Return a number rounded to six digits; None, which the page marks, if it is not finite."""
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value
