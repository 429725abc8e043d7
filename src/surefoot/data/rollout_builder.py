"""Builds a rollout step by step, or stream by stream where the streams are at different steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from surefoot.data.rollout import Rollout


class RolloutBuilder:
    """Up to T steps of N streams, written into arrays [T, N, …] that become a `Rollout`.

    Arrays are named as in `Rollout.arrays`. They are allocated by the first write, with the dtype of what is written, or
    beforehand with `allocate` where somebody else (the kernel) fills them.
    """

    def __init__(self, steps: int, streams: int) -> None:
        self.shape = (steps, streams)
        self.steps = 0
        """Steps written so far by `add`."""
        self.arrays: dict[str, np.ndarray] = {}
        self.cuts: list[tuple[int, np.ndarray, np.ndarray]] = []
        """(step, [N] which streams were truncated there, [N] the value of their last observations)."""
        self.dropped: list[tuple[int, int, int]] = []
        """(first step, last step, stream) of what must not be learned from."""

    def allocate(self, name: str, dtype: Any, *row: int) -> np.ndarray:
        """Return the array `name`, [T, N, *row], new and all zeros."""
        self.arrays[name] = array = np.zeros((*self.shape, *row), dtype)
        return array

    def write(self, index: Any, row_dims: int, parts: Mapping[str, np.ndarray]) -> None:
        """Write `parts` at `index` of the first two axes; their first `row_dims` axes are those of the index."""
        for name, part in parts.items():
            if (array := self.arrays.get(name)) is None:
                array = self.allocate(name, part.dtype, *part.shape[row_dims:])
                if name == "action_mask":
                    array[...] = True  # rows that nobody writes allow everything
            array[index] = part

    def add(self, parts: Mapping[str, np.ndarray]) -> None:
        """Write the next step, [N, …] of every stream."""
        self.write(self.steps, 1, parts)
        self.steps += 1

    def cut(self, step: int, streams: np.ndarray, value: np.ndarray) -> None:
        """Record that `streams` were truncated at `step`, where their last observations are worth `value`."""
        self.cuts.append((step, streams, value))

    def exclude_dropped(self) -> None:
        """Mark what must not be learned from as not valid."""
        for first, last, stream in self.dropped:
            self.arrays["valid"][first : last + 1, stream] = False

    def build(
        self,
        policy_version: int,
        *,
        ahead: np.ndarray | None = None,
        steps: int | None = None,
        context: Mapping[str, np.ndarray] | None = None,
        stats: Mapping[str, float] | None = None,
        **changes: np.ndarray,
    ) -> Rollout:
        """Return the first `steps` steps (default: all that were added) as a rollout.

        With `ahead`, the value of what follows the last step, each step's successor is worth what the next step's value
        is, or what `cut` says; without it `next_value` has been written already. `changes` replace whole arrays.
        """
        steps = self.steps if steps is None else steps
        arrays = {name: x[:steps] for name, x in self.arrays.items()} | changes
        if ahead is not None:
            arrays["next_value"] = next_value = np.concatenate([arrays["value"][1:], ahead[None]])
            for step, streams, value in self.cuts:
                next_value[step, streams] = value[streams]
        arrays["policy_version"] = np.full(arrays["valid"].shape, policy_version, np.int64)
        arrays |= {f"context.{name}": x for name, x in (context or {}).items()}
        return Rollout.from_arrays(arrays, stats)
