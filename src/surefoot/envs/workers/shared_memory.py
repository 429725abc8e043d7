"""The memory that a world and its workers share: what is done and what is seen in each stream, one array each."""

from __future__ import annotations

import math
import mmap
import os
import tempfile
from dataclasses import dataclass

import numpy as np

from surefoot.data.spaces import ObservationSpace
from surefoot.envs.api import Arrays
from surefoot.envs.gym.single_envs import REPORTS

_LINE = 64
"""Arrays begin at a cache line, so that two processes write to one only at the border of their shares."""

Shapes = dict[str, tuple[tuple[int, ...], str]]


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
        return Board(
            obs={name: part[rows] for name, part in self.obs.items()},
            final={name: part[rows] for name, part in self.final.items()},
            action=self.action[rows],
            reward=self.reward[rows],
            terminated=self.terminated[rows],
            truncated=self.truncated[rows],
            mask=self.mask[rows],
            reports=self.reports[rows],
            ended=self.ended,
            told=self.told,
            masked=self.masked,
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
    arrays = _arrays(memory, shapes)
    obs = {name: arrays.pop(f"obs {name}") for name in observation}
    final = {name: arrays.pop(f"final {name}") for name in observation}
    return Board(obs=obs, final=final, **arrays)


def _arrays(memory: int, shapes: Shapes) -> Arrays:
    offsets: dict[str, int] = {}
    size = 0
    for name, (shape, dtype) in shapes.items():
        offsets[name] = size
        length = math.prod(shape) * np.dtype(dtype).itemsize
        size += -(-max(length, 1) // _LINE) * _LINE
    if os.fstat(memory).st_size < size:
        os.ftruncate(memory, size)
    shared = mmap.mmap(memory, size)
    return {name: np.ndarray(shape, dtype, shared, offsets[name]) for name, (shape, dtype) in shapes.items()}


def new_memory() -> int:
    """An empty file without a name: it is gone when the last process that holds it is, however that ends."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("surefoot", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
