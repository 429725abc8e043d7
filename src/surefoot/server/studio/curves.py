"""The metrics of updates, as many as a screen can show."""

from __future__ import annotations

import math
import threading
from typing import Any

MOST = 4000
"""Rows; beyond that every second one is dropped, so that a curve of any length keeps its shape."""


class CurveBook:
    """One row per update; written by the run's thread, read by the event loop's."""

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []
        self._fresh: list[dict[str, Any]] = []
        self._each, self._count = 1, 0
        self._lock = threading.Lock()

    def add(self, metrics: dict[str, Any]) -> None:
        """Add the metrics of an update."""
        row = {name: rounded(value) for name, value in metrics.items() if isinstance(value, int | float)}
        with self._lock:
            self._count += 1
            if self._count % self._each == 0:
                self._rows.append(row)
            if len(self._rows) > MOST:
                self._rows, self._each = self._rows[1::2], self._each * 2
            self._fresh.append(row)

    def take(self) -> list[dict[str, Any]]:
        """Return the rows since the last call, at most the last 50."""
        with self._lock:
            fresh, self._fresh = self._fresh[-50:], []
        return fresh

    def to_json(self) -> list[dict[str, Any]]:
        """Return all rows."""
        with self._lock:
            return list(self._rows)


def rounded(value: float | None) -> float | int | None:
    """Return a number with six digits for the page; None, which the page marks, if it is not finite."""
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value
