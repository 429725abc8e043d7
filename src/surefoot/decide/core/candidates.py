"""Candidates that each decision brings along: stable indices for their ids, and what is learned for ids never seen before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.decide.policy.outcome_model import Scene

# The first ids have separate weights from the beginning, later ones when they come again, so that ids which never return
# take no memory. 1,000 ids of 384 numbers are 1.5 MB.
_AT_ONCE, _MOST_IDS = 256, 1000
# Ids that came once; the oldest is dropped.
_ONCE = 10_000
# Step of the shared weights: chosen on ids that are new in every decision (tests/unit/decide/core/test_candidates.py).
_STEP = 2.0


@dataclass(frozen=True, slots=True)
class Candidates:
    """The options of one decision."""

    ids: Sequence[str]
    vectors: np.ndarray
    """[K, d], rows of length 1."""


class CandidateSet:
    """Indices of ids, and shared weights M of x · M · d that apply to every candidate by its description d.

    M is used and trained from the first id on that was not among the first candidates: with a fixed set of candidates the
    weights of each id are enough, and a policy over candidates decides as one over named options does.
    """

    def __init__(self, dim: int) -> None:
        self.dim, self.changing = dim, False
        """`changing`: True once an id came that the first decision did not have."""
        self._index: dict[str, int] = {}
        self._once: dict[str, None] = {}
        self._shared = np.zeros((0, 0), np.float32)

    @property
    def ids(self) -> list[str]:
        """Ids by their index."""
        return list(self._index)

    @property
    def highest(self) -> int:
        """One more than the highest index that candidates can have by now."""
        return len(self._index) if not self._once else _MOST_IDS + 256

    def scene(self, x: np.ndarray, candidates: Candidates, *, register: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Return the stable index of each candidate and its cosine with a query of length 1, [K] each."""
        if register:
            self.register(candidates.ids)
        places = enumerate(candidates.ids)
        # By its place in the list: what is learned there is only whether earlier places are better.
        option = np.array([self._index.get(id, _MOST_IDS + place) for place, id in places], np.int64)
        return option, candidates.vectors @ x

    def shared(self, x: np.ndarray, candidates: Candidates) -> np.ndarray:
        """Return the shared part of the logits, [K]."""
        if not len(self._shared):
            return np.zeros(len(candidates.ids), np.float32)
        return candidates.vectors @ (x @ self._shared)

    def learn(self, scene: Scene, contrast: np.ndarray, residual: float) -> None:
        """Move x · M · d of the chosen candidate by its residual; `contrast` is its vector minus the expected one."""
        if not len(self._shared):
            self._shared = np.zeros((self.dim, self.dim), np.float32)
        # A new array: `shared` may be reading the old one in another thread.
        self._shared = self._shared + np.outer(scene.x[: self.dim], np.float32(_STEP * residual) * contrast)

    def register(self, ids: Sequence[str]) -> None:
        """Give ids their indices, as far as there is room."""
        first = not self._index
        for id in ids:
            if id in self._index:
                continue
            self.changing = self.changing or not first
            known = len(self._index)
            if known < _AT_ONCE or (known < _MOST_IDS and id in self._once):
                self._index[id] = known
                self._once.pop(id, None)
            else:
                self._once[id] = None
                if len(self._once) > _ONCE:
                    self._once.pop(next(iter(self._once)))

    def state(self) -> dict[str, Any]:
        return {
            "ids": list(self._index),
            "once": list(self._once),
            "changing": self.changing,
            "shared": self._shared.copy(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        self._index = {str(id): i for i, id in enumerate(state["ids"])}
        self._once = {str(id): None for id in state["once"]}
        self.changing, self._shared = bool(state["changing"]), np.array(state["shared"], np.float32)
