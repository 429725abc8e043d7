"""Values on edges as they flow: looked at a few times a second, at the end of a tick, and only where somebody looks."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from surefoot.graph.spec.model import End, as_end

BINS = 16
RING = 256


def summary(value: Any) -> dict[str, Any]:
    """Form, moments and a histogram of a value, as JSON values; what is no number is only named."""
    if isinstance(value, dict):
        numbers = [x for x in value.values() if isinstance(x, int | float)]
        if numbers and len(numbers) == len(value):
            return {"kind": "table", "entries": {str(k): _plain(v) for k, v in list(value.items())[:64]}}
        return {"kind": "parts", "parts": {str(name): summary(part) for name, part in list(value.items())[:16]}}
    if hasattr(value, "action") and hasattr(value, "log_prob"):
        names = ("action", "value", "log_prob")
        return {"kind": "parts", "parts": {name: summary(getattr(value, name)) for name in names}}
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub" and value.size:
        return _array(value)
    if isinstance(value, bool | int | float | str) or value is None:
        return {"kind": "value", "value": _plain(value)}
    if isinstance(value, list):
        return {"kind": "list", "length": len(value)}
    return {"kind": type(value).__name__}


def _array(value: np.ndarray) -> dict[str, Any]:
    flat = value.astype(np.float64).ravel()
    fine = flat[np.isfinite(flat)]
    told: dict[str, Any] = {
        "kind": "array",
        "shape": list(value.shape),
        "dtype": str(value.dtype),
        "nonfinite": int(flat.size - fine.size),
    }
    if fine.size:
        counts, edges = np.histogram(fine, bins=BINS)
        told |= {
            "mean": float(fine.mean()),
            "std": float(fine.std()),
            "min": float(fine.min()),
            "max": float(fine.max()),
            "histogram": counts.tolist(),
            "edges": [float(edges[0]), float(edges[-1])],
            "first": [_plain(x) for x in flat[:8].tolist()],
        }
    return told


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value


class Live:
    """Which edges are looked at, and what was seen on each: the last `RING` looks, by tick."""

    def __init__(self, per_second: float = 10.0, clock: Callable[[], float] = time.monotonic) -> None:
        self.gap, self.clock = 1.0 / per_second, clock
        self.rings: dict[End, deque[dict[str, Any]]] = {}
        self._next = 0.0

    def watch(self, end: End | str) -> None:
        """Begin to look at an output."""
        self.rings.setdefault(as_end(end), deque(maxlen=RING))

    def forget(self, end: End | str) -> None:
        """Look no more."""
        self.rings.pop(as_end(end), None)

    def due(self) -> bool:
        """True if somebody looks and it is time."""
        if not self.rings or (now := self.clock()) < self._next:
            return False
        self._next = now + self.gap
        return True

    def look(self, tick: int, read: Callable[[End], Any]) -> None:
        """Take what is there now; nothing is kept of the value itself."""
        for end, ring in self.rings.items():
            value = read(end)
            if value is not None:
                ring.append({"tick": tick, **summary(value)})

    def seen(self, end: End | str) -> list[dict[str, Any]]:
        """The ring of an output, oldest first."""
        return list(self.rings.get(as_end(end), ()))
