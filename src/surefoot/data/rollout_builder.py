"""Build a rollout step by step, or stream by stream if the streams are at different steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from surefoot.data.rollout import Rollout


class RolloutBuilder:
    """Up to T steps of N streams, written into arrays [T, N, …] that become a `Rollout`.

    Arrays are named as in `Rollout.arrays`. The first write allocates them, with its dtype; `allocate` does it in advance
    for arrays that the kernel fills.
    """

    def __init__(self, steps: int, streams: int) -> None:
        self.shape = (steps, streams)
        self.steps = 0
        """Steps written so far by `add`."""
        self.arrays: dict[str, np.ndarray] = {}
        self.cuts: list[tuple[int, np.ndarray, np.ndarray]] = []
        """(step, [N] which streams were truncated there, [N] the value of their last observations)."""
        self.dropped: list[tuple[int, int, int]] = []
        """(first step, last step, stream) of steps that are excluded from learning."""

    def allocate(self, name: str, dtype: Any, *row: int) -> np.ndarray:
        """Return the new array `name`, [T, N, *row], all zeros."""
        self.arrays[name] = array = np.zeros((*self.shape, *row), dtype)
        return array

    def write(self, index: Any, row_dims: int, parts: Mapping[str, np.ndarray]) -> None:
        """Write `parts` at `index` of the first two axes; their first `row_dims` axes are those of the index."""
        for name, part in parts.items():
            if (array := self.arrays.get(name)) is None:
                array = self.allocate(name, part.dtype, *part.shape[row_dims:])
                if name == "action_mask":
                    array[...] = True  # rows that are never written allow everything
            array[index] = part

    def add(self, parts: Mapping[str, np.ndarray]) -> None:
        """Write the next step, [N, …] of every stream."""
        self.write(self.steps, 1, parts)
        self.steps += 1

    def cut(self, step: int, streams: np.ndarray, value: np.ndarray) -> None:
        """Record that `streams` were truncated at `step`; `value` is the value of their last observations."""
        self.cuts.append((step, streams, value))

    def exclude_dropped(self) -> None:
        """Mark the dropped steps as not valid."""
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

        With `ahead`, the values after the last step, `next_value` is the value of the next step, or the one passed to
        `cut`. Without it `next_value` must have been written. `changes` replace arrays by name.
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
