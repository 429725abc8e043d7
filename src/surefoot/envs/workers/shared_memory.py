"""The memory that a world and its workers share: what is done and what is seen in each stream, one array each."""

from __future__ import annotations

import math
import mmap
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from surefoot.data.spaces import ObservationSpace
from surefoot.envs.api import Arrays
from surefoot.envs.gym.single_envs import REPORTS

_LINE = 64
"""Arrays begin at a cache line, so that two processes write to one only at the border of their shares."""

Shapes = dict[str, tuple[tuple[int, ...], str]]
Layout = list[tuple[str, str, tuple[int, ...], int]]
"""(name, dtype, shape, first byte) of each array."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """Arrays over one piece of memory, for N streams in S shares. A worker has the rows of its own streams."""

    obs: Arrays
    final: Arrays
    """True successors, in the shares where an episode ended."""
    action: np.ndarray
    """In the envs' own dtype and shape."""
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    mask: np.ndarray
    """[N, A]; A is 0 for continuous actions."""
    reports: np.ndarray
    """[N, R]: what the episodes that ended say of themselves, one column each of `vector.REPORTS`."""
    ended: np.ndarray
    """[S] bool: an episode ended in this share, so its rows of `final` count."""
    told: np.ndarray
    """[S, R] bool: an episode that ended in this share said something of this kind."""
    masked: np.ndarray
    """[S] bool: the envs of this share say what is allowed."""

    def share(self, first: int, count: int) -> Board:
        """The rows of `count` streams from `first` on."""
        rows = slice(first, first + count)
        by_stream = ("action", "reward", "terminated", "truncated", "mask", "reports")
        return replace(
            self,
            obs={name: part[rows] for name, part in self.obs.items()},
            final={name: part[rows] for name, part in self.final.items()},
            **{name: getattr(self, name)[rows] for name in by_stream},
        )


def open_board(
    memory: int, streams: int, shares: int, *, observation: ObservationSpace, action: np.ndarray, choices: int
) -> Board:
    """The board in the file `memory`, made large enough; the same arguments give the same board in each process.

    `action` is one action of the envs, for its dtype and shape.
    """
    shapes: Shapes = {}
    for name, box in observation.items():
        shapes[f"obs {name}"] = shapes[f"final {name}"] = (streams, *box.shape), box.dtype
    shapes["action"] = (streams, *action.shape), action.dtype.str
    shapes["reward"] = (streams,), "f8"
    shapes["reports"] = (streams, len(REPORTS)), "f8"
    shapes["told"] = (shares, len(REPORTS)), "?"
    shapes["terminated"] = shapes["truncated"] = (streams,), "?"
    shapes["mask"] = (streams, choices), "?"
    shapes["ended"] = shapes["masked"] = (shares,), "?"
    arrays = SharedArrays(memory).views(*lay_out(shapes))
    obs = {name: arrays.pop(f"obs {name}") for name in observation}
    final = {name: arrays.pop(f"final {name}") for name in observation}
    return Board(obs=obs, final=final, **arrays)


def lay_out(shapes: Shapes, begin: int = 0) -> tuple[Layout, int]:
    """Return where arrays of these shapes lie one after the other from byte `begin` on, and the byte after them."""
    layout: Layout = []
    for name, (shape, dtype) in shapes.items():
        layout.append((name, dtype, shape, begin))
        begin += -(-max(math.prod(shape) * np.dtype(dtype).itemsize, 1) // _LINE) * _LINE
    return layout, begin


class SharedArrays:
    """A file in memory seen as named arrays; grows as needed."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._map: mmap.mmap | None = None

    def put(self, arrays: Mapping[str, np.ndarray], begin: int = 0) -> tuple[Layout, int]:
        """Write arrays one after the other from byte `begin` on; return where they are, and the byte after them."""
        layout, end = lay_out({name: (array.shape, array.dtype.str) for name, array in arrays.items()}, begin)
        for name, view in self.views(layout, end).items():
            view[...] = arrays[name]
        return layout, end

    def get(self, layout: Layout) -> dict[str, np.ndarray]:
        """Return copies of the arrays at `layout`: what is shared is about to be overwritten."""
        end = max((at + math.prod(shape) * np.dtype(kind).itemsize for _, kind, shape, at in layout), default=0)
        return {name: view.copy() for name, view in self.views(layout, end).items()}

    def views(self, layout: Layout, end: int) -> Arrays:
        """Return the arrays at `layout` themselves; the file is made at least `end` bytes long."""
        size = max(end, 1)
        if self._map is None or len(self._map) < size:
            if os.fstat(self._file).st_size < size:
                os.ftruncate(self._file, size)
            self._map = mmap.mmap(self._file, os.fstat(self._file).st_size)
        return {name: np.ndarray(shape, kind, buffer=self._map, offset=at) for name, kind, shape, at in layout}


def new_memory() -> int:
    """An empty file without a name: it is gone when the last process that holds it is, however that ends."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("surefoot", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
