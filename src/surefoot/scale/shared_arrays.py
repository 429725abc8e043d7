"""Arrays laid out in memory that two processes share: weights one way, rollouts the other."""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping

import numpy as np

Layout = list[tuple[str, str, tuple[int, ...], int]]
"""(name, dtype, shape, first byte) of each array."""

_LINE = 64


class Shared:
    """A file in memory seen as named arrays, from byte `begin` on; grows as needed."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._map: mmap.mmap | None = None

    def put(self, arrays: Mapping[str, np.ndarray], begin: int = 0) -> tuple[Layout, int]:
        """Write arrays one after the other; where they lie, and the byte after them."""
        layout: Layout = []
        for name, array in arrays.items():
            layout.append((name, array.dtype.str, array.shape, begin))
            begin += -(-array.nbytes // _LINE) * _LINE
        view = self._view(begin)
        for (_, dtype, shape, at), array in zip(layout, arrays.values(), strict=True):
            np.ndarray(shape, dtype, buffer=view, offset=at)[...] = array
        return layout, begin

    def get(self, layout: Layout) -> dict[str, np.ndarray]:
        """The arrays at `layout`, in memory of their own: what is shared is about to be written over."""
        end = max((at + int(np.prod(shape)) * np.dtype(kind).itemsize for _, kind, shape, at in layout), default=0)
        view = self._view(end)
        return {name: np.ndarray(shape, kind, buffer=view, offset=at).copy() for name, kind, shape, at in layout}

    def _view(self, size: int) -> mmap.mmap:
        size = max(size, 1)
        if self._map is None or len(self._map) < size:
            if os.fstat(self._file).st_size < size:
                os.ftruncate(self._file, size)
            self._map = mmap.mmap(self._file, os.fstat(self._file).st_size)
        return self._map
