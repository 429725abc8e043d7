"""Answers that were given before: by query, depth, allowed tools and policy version, for a while, the oldest first to go."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TypeVar

from surefoot.decide.tools.run import RunTrace, ToolRun

T = TypeVar("T", ToolRun, RunTrace)

Key = tuple[str, str, frozenset[str], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheStats:
    size: int
    hits: int
    misses: int

    @property
    def hit_rate(self) -> float:
        asked = self.hits + self.misses
        return self.hits / asked if asked else 0.0


class QueryCache:
    """LRU with an age limit. What it gives is a copy: scoring an answer does not change the one that is kept."""

    def __init__(
        self, max_size: int = 50, ttl_seconds: float = 300.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.max_size, self.ttl_seconds, self._clock = max_size, ttl_seconds, clock
        self._kept: OrderedDict[Key, tuple[float, ToolRun]] = OrderedDict()
        self._hits, self._misses = 0, 0
        self._lock = threading.Lock()

    @staticmethod
    def key(text: str, depth: str, allowed: Collection[str], version: int) -> Key:
        return text, depth, frozenset(allowed), version

    def get(self, key: Key) -> ToolRun | None:
        """The kept answer, copied, or None; counted once, as a hit or a miss."""
        with self._lock:
            found = self._kept.get(key)
            if found is None or self._clock() - found[0] > self.ttl_seconds:
                self._kept.pop(key, None)
                self._misses += 1
                return None
            self._hits += 1
            self._kept.move_to_end(key)
        return fresh_copy(found[1])

    def put(self, key: Key, run: ToolRun) -> None:
        with self._lock:
            self._kept[key] = (self._clock(), fresh_copy(run))
            self._kept.move_to_end(key)
            while len(self._kept) > self.max_size:
                self._kept.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()

    @property
    def stats(self) -> CacheStats:
        return CacheStats(size=len(self._kept), hits=self._hits, misses=self._misses)


def fresh_copy(run: ToolRun) -> ToolRun:
    """Return a copy with separate lists and dicts, one level deep: microseconds, where `deepcopy` takes hundreds."""
    new = _shallow(run)
    new.trace = _shallow(run.trace)
    new.trace.errors = [dict(each) for each in run.trace.errors]
    return new


def _shallow(record: T) -> T:
    """`copy.copy` for a class with slots, without its detour over pickling; lists and dicts are copied too."""
    new = object.__new__(type(record))
    for name in record.__slots__:
        value = getattr(record, name)
        setattr(new, name, value.copy() if isinstance(value, list | dict) else value)
    return new
