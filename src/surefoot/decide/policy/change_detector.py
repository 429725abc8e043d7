"""Detects that an option no longer does what is expected of it."""

from __future__ import annotations

import math
from typing import Any

# Outcomes per option over which a change is detected: enough for a test at 4 deviations, few enough to react within a day.
WINDOW = 30


class ChangeDetector:
    """Compares the expected and the observed successes of each option over its last outcomes."""

    def __init__(self, surprise: float) -> None:
        """`surprise`: standard deviations of missing successes that count as a change."""
        self.surprise = surprise
        self._last: dict[int, list[tuple[float, float]]] = {}

    def observe(self, option: int, expected: float, reward: float) -> bool:
        """Add an outcome; return whether the option now clearly fails where it was expected to succeed."""
        last = self._last.setdefault(option, [])
        # Near 0 or 1 the expected variance is almost 0, and a single failure would look like a change.
        last.append((min(max(expected, 0.05), 0.95), reward))
        if len(last) > WINDOW:
            del last[0]
        if len(last) < WINDOW // 2:
            return False
        missing = sum(e - r for e, r in last)
        if missing < self.surprise * math.sqrt(sum(e * (1.0 - e) for e, _ in last)):
            return False
        # These outcomes have done their part; counted again, they would report the same change at the next outcome.
        last.clear()
        return True

    def state(self) -> dict[str, Any]:
        return {str(a): [[float(e), float(r)] for e, r in rows] for a, rows in self._last.items()}

    def set_state(self, state: dict[str, Any]) -> None:
        self._last = {int(a): [(e, r) for e, r in rows] for a, rows in state.items()}
