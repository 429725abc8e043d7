"""Summaries of the values on watched outputs, taken at the end of a tick a few times per second."""

from __future__ import annotations

import math
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from surefoot.graph.spec.model import End, as_end

# The editor draws a histogram of 16 bars and a curve of 256 points per edge, about 26 seconds at 10 summaries per second.
BINS = 16
RING = 256


def summary(value: Any) -> dict[str, Any]:
    """Return shape, moments and a histogram of a value as JSON values; of other objects, the name of the type."""
    if isinstance(value, dict):
        numbers = [x for x in value.values() if isinstance(x, int | float)]
        # At most 64 entries and 16 parts, to bound the size of a message to the browser.
        if numbers and len(numbers) == len(value):
            return {"kind": "table", "entries": {str(k): _plain(v) for k, v in list(value.items())[:64]}}
        return {"kind": "parts", "parts": {str(name): summary(part) for name, part in list(value.items())[:16]}}
    if hasattr(value, "action") and hasattr(value, "log_prob"):
        parts = {name: getattr(value, name) for name in ("action", "value", "log_prob")}
        parts |= getattr(value, "action_params", {})
        return {"kind": "parts", "parts": {name: summary(part) for name, part in parts.items()}}
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub" and value.size:
        return _array(value)
    if isinstance(value, bool | int | float | str) or value is None:
        return {"kind": "value", "value": _plain(value)}
    if isinstance(value, list):
        return {"kind": "list", "length": len(value)}
    return {"kind": type(value).__name__}


def run_and_print(engine: Any, ends: Sequence[str]) -> int:
    """Run an interpreter to its end, printing the latest values of some outputs; return the number of ticks."""
    latest: dict[str, tuple[int, Any]] = {}
    # Twenty prints per run: enough to see a trend, few enough to read.
    every = max(1, engine.plan.ticks // 20)
    while not engine.finished:
        engine.run(1)
        # In every tick: outputs of a trainer have a value only in the tick of an update.
        for end in ends:
            if (value := engine.machine.value(as_end(end))) is not None:
                latest[end] = engine.ticks, value
        if engine.ticks % every == 0 or engine.finished:
            for end in [each for each in ends if each in latest]:
                tick, value = latest.pop(end)
                print(f"tick {tick:,}  {end}  {value_line(value)}", flush=True)
    return engine.ticks


def value_line(value: Any) -> str:
    """Return a value as one line of text: numbers by name, or shape and mean of arrays."""
    return _line(summary(value))


def _line(content: dict[str, Any]) -> str:
    match content["kind"]:
        case "table":
            return "  ".join(
                f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in content["entries"].items()
            )
        case "parts":
            return "  ".join(f"{name} {_line(part)}" for name, part in content["parts"].items())
        case "array":
            return f"{content['shape']} mean {content.get('mean', math.nan):.4g}"
        case "value":
            return str(content["value"])
        case kind:
            return f"{content['length']} items" if "length" in content else str(kind)


def _array(value: np.ndarray) -> dict[str, Any]:
    flat = value.astype(np.float64).ravel()
    finite = flat[np.isfinite(flat)]
    result: dict[str, Any] = {
        "kind": "array",
        "shape": list(value.shape),
        "dtype": str(value.dtype),
        "nonfinite": int(flat.size - finite.size),
    }
    if finite.size:
        low, high = float(finite.min()), float(finite.max())
        # As np.histogram, which takes four times as long for the few numbers of an edge; halved, because the range may overflow.
        edges = (low, high) if low < high else (low - 0.5, high + 0.5)
        share = (finite / 2 - edges[0] / 2) / (edges[1] / 2 - edges[0] / 2)
        counts = np.bincount(np.minimum(share * BINS, BINS - 1).astype(np.int64), minlength=BINS)
        with np.errstate(over="ignore", invalid="ignore"):
            mean, std = float(finite.mean()), float(finite.std())
        result |= {
            "mean": _plain(mean),
            "std": _plain(std),
            "min": low,
            "max": high,
            "histogram": counts.tolist(),
            "edges": list(edges),
            "first": [_plain(x) for x in flat[:8].tolist()],
        }
    return result


def _plain(value: Any) -> Any:
    # JSON has no NaN and no infinity.
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value


class Live:
    """The watched outputs and their last `RING` summaries."""

    def __init__(self, per_second: float = 10.0, clock: Callable[[], float] = time.monotonic) -> None:
        self.gap, self.clock = 1.0 / per_second, clock
        self.rings: dict[End, deque[dict[str, Any]]] = {}
        self._next = 0.0
        self._owed = set[End]()
        """Watched outputs that had no value when the last summaries were taken, such as those of a trainer."""

    def watch(self, end: End | str) -> None:
        """Start to watch an output."""
        self.rings.setdefault(as_end(end), deque(maxlen=RING))

    def forget(self, end: End | str) -> None:
        """Stop watching an output."""
        self.rings.pop(as_end(end), None)
        self._owed.discard(as_end(end))

    @property
    def is_due(self) -> bool:
        """Whether something is watched and it is time for the next summary."""
        return bool(self.rings) and self.clock() >= self._next

    def after_tick(self, tick: int, read: Callable[[End], Any]) -> None:
        """Take the summaries that are due."""
        if self.is_due:
            self._next = self.clock() + self.gap
            self.sample(tick, read)
        else:
            self.catch_up(tick, read)

    def wait(self, seconds: float) -> None:
        """Take no summaries for some time, except those of values that are still missing."""
        self._next = max(self._next, self.clock() + seconds)

    def catch_up(self, tick: int, read: Callable[[End], Any]) -> None:
        """Take the summaries of outputs that had no value when the others were taken, and have one now."""
        if self._owed:
            self._take(list(self._owed), tick, read)

    def sample(self, tick: int, read: Callable[[End], Any]) -> None:
        """Add summaries of the current values; the values themselves are not stored."""
        self._take(self.rings, tick, read)

    def _take(self, ends: Iterable[End], tick: int, read: Callable[[End], Any]) -> None:
        for end in ends:
            if (value := read(end)) is None:
                self._owed.add(end)
            else:
                self._owed.discard(end)
                self.rings[end].append({"tick": tick, **summary(value)})

    def summaries(self, end: End | str) -> list[dict[str, Any]]:
        """Return the summaries of an output, oldest first."""
        return list(self.rings.get(as_end(end), ()))

    def __getattr__(self, name: str) -> Any:
        # The documentation called `summaries` `seen`; the old name works for one release.
        if name == "seen":
            warnings.warn("Live.seen is now Live.summaries", DeprecationWarning, stacklevel=2)
            return self.summaries
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
