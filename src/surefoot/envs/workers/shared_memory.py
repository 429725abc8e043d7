"""The memory that a world and its workers share: actions, observations and results, one array each."""

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

# Bytes of a cache line. Arrays begin at one, so that two processes write to the same only at the border of their shares.
_LINE = 64

Shapes = dict[str, tuple[tuple[int, ...], str]]
Layout = list[tuple[str, str, tuple[int, ...], int]]
"""(name, dtype, shape, first byte) of each array."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """Arrays over one piece of memory, for N streams in S shares. A worker has the rows of its streams."""

    obs: Arrays
    final: Arrays
    """True successors, in the shares where an episode ended."""
    action: np.ndarray
    """In the envs' dtype and shape."""
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    mask: np.ndarray
    """[N, A]; A is 0 for continuous actions."""
    reports: np.ndarray
    """[N, R]: metrics of ended episodes, one column per entry of `single_envs.REPORTS`."""
    ended: np.ndarray
    """[S] bool: an episode ended in this share, so its rows of `final` count."""
    reported: np.ndarray
    """[S, R] bool: an episode that ended in this share has this metric."""
    masked: np.ndarray
    """[S] bool: the envs of this share have action masks."""

    def share(self, first: int, count: int) -> Board:
        """Return the rows of `count` streams from `first` on."""
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
    """Return the board in the file `memory`, which is enlarged; the same arguments give the same board in each process.

    `action` is an action of one env, for its dtype and shape.
    """
    shapes: Shapes = {}
    for name, box in observation.items():
        shapes[f"obs {name}"] = shapes[f"final {name}"] = (streams, *box.shape), box.dtype
    shapes["action"] = (streams, *action.shape), action.dtype.str
    shapes["reward"] = (streams,), "f8"
    shapes["reports"] = (streams, len(REPORTS)), "f8"
    shapes["reported"] = (shares, len(REPORTS)), "?"
    shapes["terminated"] = shapes["truncated"] = (streams,), "?"
    shapes["mask"] = (streams, choices), "?"
    shapes["ended"] = shapes["masked"] = (shares,), "?"
    arrays = SharedArrays(memory).views(*lay_out(shapes))
    obs = {name: arrays.pop(f"obs {name}") for name in observation}
    final = {name: arrays.pop(f"final {name}") for name in observation}
    return Board(obs=obs, final=final, **arrays)


def lay_out(shapes: Shapes, begin: int = 0) -> tuple[Layout, int]:
    """Return the positions of arrays of these shapes in a row from byte `begin` on, and the byte after them."""
    layout: Layout = []
    for name, (shape, dtype) in shapes.items():
        layout.append((name, dtype, shape, begin))
        begin += -(-max(math.prod(shape) * np.dtype(dtype).itemsize, 1) // _LINE) * _LINE
    return layout, begin


class SharedArrays:
    """A file in memory as named arrays; grows as needed."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._map: mmap.mmap | None = None

    def put(self, arrays: Mapping[str, np.ndarray], begin: int = 0) -> tuple[Layout, int]:
        """Write arrays in a row from byte `begin` on; return their positions and the byte after them."""
        layout, end = lay_out({name: (array.shape, array.dtype.str) for name, array in arrays.items()}, begin)
        for name, view in self.views(layout, end).items():
            view[...] = arrays[name]
        return layout, end

    def get(self, layout: Layout) -> dict[str, np.ndarray]:
        """Return copies of the arrays at `layout`, because the shared ones will be overwritten."""
        end = max((begin + math.prod(shape) * np.dtype(kind).itemsize for _, kind, shape, begin in layout), default=0)
        return {name: view.copy() for name, view in self.views(layout, end).items()}

    def views(self, layout: Layout, end: int) -> Arrays:
        """Return the shared arrays at `layout`; the file is enlarged to at least `end` bytes."""
        size = max(end, 1)
        if self._map is None or len(self._map) < size:
            if os.fstat(self._file).st_size < size:
                os.ftruncate(self._file, size)
            self._map = mmap.mmap(self._file, os.fstat(self._file).st_size)
        return {name: np.ndarray(shape, kind, buffer=self._map, offset=begin) for name, kind, shape, begin in layout}


def new_memory() -> int:
    """Return an unnamed empty file; it is freed when the last process that has it open ends."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("surefoot", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
