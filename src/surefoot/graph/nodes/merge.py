"""Values merged and rows split; nothing that comes in is ever lost."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from surefoot.errors import GraphError


class Or:
    """fby: the first value, then the loop's. priority: whichever is there, in order; with `queue` the others wait."""

    def __init__(self, mode: str = "fby", queue: bool = False) -> None:
        self.mode, self.queue = mode, queue or mode == "arrival"
        self.waiting: deque[Any] = deque()

    def __call__(self, a: Any = None, b: Any = None, c: Any = None) -> Any:
        if self.mode == "fby":
            return a if b is None else b
        if not self.queue:
            there = [value for value in (a, b, c) if value is not None]
            if len(there) > 1:
                raise GraphError("two values came in one tick; set queue to true to keep both, one after the other")
            return there[0] if there else None
        self.waiting.extend(value for value in (a, b, c) if value is not None)
        return self.waiting.popleft() if self.waiting else None


class Batch:
    """Rows of all inputs one below the other."""

    def __call__(self, *values: Any) -> Any:
        there = [value for value in values if value is not None]
        if isinstance(there[0], dict):
            return {name: np.concatenate([value[name] for value in there]) for name in there[0]}
        return np.concatenate(there)


class Split:
    """The rows given back."""

    def __init__(self, sizes: Sequence[int]) -> None:
        ends = np.cumsum(sizes)
        self.cuts = [slice(int(end - size), int(end)) for end, size in zip(ends, sizes, strict=True)]

    def __call__(self, value: Any) -> tuple[Any, ...]:
        if isinstance(value, dict):
            return tuple({name: x[cut] for name, x in value.items()} for cut in self.cuts)
        return tuple(value[cut] for cut in self.cuts)
