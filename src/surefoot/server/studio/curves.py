"""Numbers of updates as columns that never grow beyond what a screen shows."""

from __future__ import annotations

import math
import threading
from typing import Any

MOST = 4000
"""Points; beyond that every second one goes, so that a curve of any length is whole."""


class CurveBook:
    """One row an update; read by the tabs' thread while the run's writes."""

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []
        self._fresh: list[dict[str, Any]] = []
        self._each, self._count = 1, 0
        self._lock = threading.Lock()

    def add(self, told: dict[str, Any]) -> None:
        """Take what a trainer said of an update."""
        row = {name: plain(value) for name, value in told.items() if isinstance(value, int | float)}
        with self._lock:
            self._count += 1
            if self._count % self._each == 0:
                self._rows.append(row)
            if len(self._rows) > MOST:
                self._rows, self._each = self._rows[1::2], self._each * 2
            self._fresh.append(row)

    def take(self) -> list[dict[str, Any]]:
        """What came since last asked; of many, the last ones."""
        with self._lock:
            fresh, self._fresh = self._fresh[-50:], []
        return fresh

    def to_json(self) -> list[dict[str, Any]]:
        """All rows that are kept."""
        with self._lock:
            return list(self._rows)


def plain(value: float) -> float | int | None:
    """None for what JSON has no word for; the page marks it."""
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value
