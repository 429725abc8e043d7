"""Cache of answers by query, depth, allowed tools and policy version."""

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
    """Counters of a cache."""

    size: int
    hits: int
    misses: int

    @property
    def hit_rate(self) -> float:
        return self.hits / max(1, self.hits + self.misses)


class QueryCache:
    """LRU cache with an age limit. It returns copies: scoring an answer does not change the cached one.

    Args:
        max_size: Number of answers; the least recently used is dropped first.
        ttl_seconds: Age from which an answer is dropped.
        clock: Source of the time, for tests.
    """

    def __init__(
        self, max_size: int = 50, ttl_seconds: float = 300.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.max_size, self.ttl_seconds, self._clock = max_size, ttl_seconds, clock
        self._entries: OrderedDict[Key, tuple[float, ToolRun]] = OrderedDict()
        self._hits, self._misses = 0, 0
        self._lock = threading.Lock()

    @staticmethod
    def key(text: str, depth: str, allowed: Collection[str], version: int) -> Key:
        return text, depth, frozenset(allowed), version

    def get(self, key: Key) -> ToolRun | None:
        """Return a copy of the cached answer or None; counts one hit or miss."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or self._clock() - entry[0] > self.ttl_seconds:
                self._entries.pop(key, None)
                self._misses += 1
                return None
            self._hits += 1
            # Most recently used last.
            self._entries.move_to_end(key)
        return fresh_copy(entry[1])

    def put(self, key: Key, run: ToolRun) -> None:
        with self._lock:
            self._entries[key] = (self._clock(), fresh_copy(run))
            self._entries.move_to_end(key)
            while len(self._entries) > self.max_size:
                self._entries.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()

    @property
    def stats(self) -> CacheStats:
        return CacheStats(size=len(self._entries), hits=self._hits, misses=self._misses)


def fresh_copy(run: ToolRun) -> ToolRun:
    """Return a copy with separate lists and dicts, one level deep; `deepcopy` would take a hundred times as long."""
    new = _shallow(run)
    new.trace = _shallow(run.trace)
    new.trace.errors = [dict(each) for each in run.trace.errors]
    return new


def _shallow(record: T) -> T:
    """Return a copy of a record with slots, its lists and dicts copied too; `copy.copy` would go through pickling."""
    new = object.__new__(type(record))
    for name in record.__slots__:
        value = getattr(record, name)
        setattr(new, name, value.copy() if isinstance(value, list | dict) else value)
    return new
