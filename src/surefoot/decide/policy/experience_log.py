"""A ring buffer of past decisions that later updates reuse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from surefoot.data.rollout import Rollout
from surefoot.decide.policy.choosers import Episode, Experience, OptionChoice
from surefoot.decide.policy.outcome_model import Scene


@dataclass(frozen=True, slots=True, kw_only=True)
class Logged:
    """A batch of B logged decisions, padded to K candidates; `valid` marks the real ones."""

    x: np.ndarray
    """[B, d]"""
    option: np.ndarray
    """[B, K]"""
    cosine: np.ndarray
    """[B, K]"""
    valid: np.ndarray
    """[B, K]"""
    at: np.ndarray
    """[B]"""
    probability: np.ndarray
    reward: np.ndarray

    def __len__(self) -> int:
        return len(self.at)

    def compact(self, options: int) -> tuple[np.ndarray | slice, np.ndarray | None]:
        """Return which of `options` rows occur, and the place of each candidate among them.

        No places if every decision has the same candidates: candidate k is then row k of those that occur.
        """
        first = self.option[0]
        if self.valid.all() and (self.option == first).all():
            every = len(first) == options and bool((first == np.arange(options)).all())
            return (slice(None) if every else first), None
        occurs = np.zeros(options, bool)
        occurs[self.option] = True
        used = np.flatnonzero(occurs)
        # A product with the whole table is cheaper than a copy of most of its rows.
        if 2 * len(used) >= options:
            return slice(None), self.option
        place = np.zeros(options, np.int64)
        place[used] = np.arange(len(used))
        return used, place[self.option]


_DTYPES: dict[str, Any] = {
    "x": np.float32,
    "option": np.int32,
    "cosine": np.float32,
    "count": np.int64,
    "at": np.int64,
    "probability": np.float64,
    "reward": np.float64,
}


class Log:
    """At most `capacity` decisions; memory grows with what is in it."""

    def __init__(self, dim: int, capacity: int) -> None:
        self.dim, self.capacity, self.size, self.written = dim, capacity, 0, 0
        self._columns = {name: np.zeros(self._shape(name, 0, 0), dtype) for name, dtype in _DTYPES.items()}

    def __len__(self) -> int:
        return self.size

    def append(self, scene: Scene, at: int, probability: float, reward: float) -> None:
        """Append a decision and its reward."""
        rows, width = self._columns["option"].shape
        if len(scene) > width or (self.size == rows and self.size < self.capacity):
            self._resize(min(self.capacity, max(64, 2 * self.size)), max(len(scene), width))
        row, columns, k = self.written % self.capacity, self._columns, len(scene)
        columns["x"][row], columns["count"][row], columns["at"][row] = scene.x, k, at
        columns["probability"][row], columns["reward"][row] = probability, reward
        columns["option"][row, :k], columns["cosine"][row, :k] = scene.option, scene.cosine
        self.written += 1
        self.size = min(self.size + 1, self.capacity)

    def sample(self, count: int, generator: np.random.Generator) -> Logged:
        """Return `count` different decisions, drawn uniformly."""
        return self.rows(generator.choice(self.size, size=min(count, self.size), replace=False))

    def rows(self, chosen: np.ndarray | slice) -> Logged:
        """Return these rows, as wide as their longest set of candidates."""
        taken = {name: column[: self.size][chosen] for name, column in self._columns.items()}
        width = int(taken["count"].max(initial=1))
        return Logged(
            x=taken["x"],
            option=taken["option"][:, :width],
            cosine=taken["cosine"][:, :width],
            valid=np.arange(width) < taken["count"][:, None],
            at=taken["at"],
            probability=taken["probability"],
            reward=taken["reward"],
        )

    def latest(self, count: int) -> Logged:
        """Return the last `count` decisions, oldest first."""
        count = min(count, self.size)
        return self.rows((self.written - count + np.arange(count)) % self.capacity)

    def state(self) -> dict[str, Any]:
        return {
            "written": self.written,
            "size": self.size,
            "columns": {name: column[: self.size].copy() for name, column in self._columns.items()},
        }

    def set_state(self, state: dict[str, Any]) -> None:
        self.written, self.size = int(state["written"]), int(state["size"])
        self._columns = {name: np.array(state["columns"][name], dtype) for name, dtype in _DTYPES.items()}

    def _shape(self, name: str, rows: int, width: int) -> tuple[int, ...]:
        if name == "x":
            return rows, self.dim
        return (rows, width) if name in ("option", "cosine") else (rows,)

    def _resize(self, rows: int, width: int) -> None:
        for name, old in self._columns.items():
            new = np.zeros(self._shape(name, max(rows, len(old)), width), old.dtype)
            new[tuple(slice(size) for size in old.shape)] = old
            self._columns[name] = new


def stack_rollouts(first: Rollout, second: Rollout) -> Rollout:
    """Return both rollouts as streams of one; pad the shorter in time and the narrower in candidates."""
    steps = max(first.reward.shape[0], second.reward.shape[0])

    def join(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        shape = (steps, a.shape[1] + b.shape[1], *(max(m, n) for m, n in zip(a.shape[2:], b.shape[2:], strict=True)))
        # Zeros: `valid` and the masks are then false in the padding, which the learner leaves out.
        joined = np.zeros(shape, a.dtype)
        joined[(slice(a.shape[0]), slice(a.shape[1]), *(slice(n) for n in a.shape[2:]))] = a
        joined[(slice(b.shape[0]), slice(a.shape[1], None), *(slice(n) for n in b.shape[2:]))] = b
        return joined

    assert first.action_mask is not None
    assert second.action_mask is not None
    names = ("action", "log_prob", "value", "next_value", "reward", "terminated", "truncated", "start", "valid")
    arrays: dict[str, Any] = {
        name: join(getattr(first, name), getattr(second, name)) for name in (*names, "policy_version")
    }
    return Rollout(
        **arrays,
        obs={name: join(part, second.obs[name]) for name, part in first.obs.items()},
        action_mask=join(first.action_mask, second.action_mask),
        stats={**first.stats, **second.stats},
    )


_ARRAYS = ("probabilities", "worth", "prior", "learned", "base", "plausible")


def pack(episodes: Sequence[Episode]) -> dict[str, Any]:
    """Return ragged rows as a few long arrays: their lengths, and all values concatenated."""
    steps = [step for episode in episodes for step in episode]
    if not steps:
        return {}
    packed: dict[str, Any] = {
        "episodes": np.array([len(e) for e in episodes], np.int64),
        "candidates": np.array([len(s.scene) for s in steps], np.int64),
        "x": np.stack([s.scene.x for s in steps]),
        "option": np.concatenate([s.scene.option for s in steps]),
        "cosine": np.concatenate([s.scene.cosine for s in steps]),
        "numbers": np.array([[s.choice.at, s.choice.probability, s.choice.value, s.reward, s.weight] for s in steps]),
        "versions": np.array([s.choice.version for s in steps], np.int64),
        "ids": [s.id for s in steps],
    }
    return packed | {name: np.concatenate([getattr(s.choice, name) for s in steps]) for name in _ARRAYS}


def unpack(packed: dict[str, Any]) -> list[Episode]:
    """Return the episodes of `pack`."""
    if not packed:
        return []
    ends = np.cumsum(packed["candidates"])
    steps = list[Experience]()
    for i, end in enumerate(ends):
        part = slice(int(end - packed["candidates"][i]), int(end))
        at, probability, value, reward, weight = (float(n) for n in packed["numbers"][i])
        parts: dict[str, Any] = {name: np.array(packed[name][part]) for name in _ARRAYS}
        steps.append(
            Experience(
                scene=Scene(
                    x=np.array(packed["x"][i]),
                    option=np.array(packed["option"][part]),
                    cosine=np.array(packed["cosine"][part]),
                ),
                choice=OptionChoice(
                    at=int(at), probability=probability, value=value, version=int(packed["versions"][i]), **parts
                ),
                reward=reward,
                weight=weight,
                id=packed["ids"][i],
            )
        )
    remaining = iter(steps)
    return [list(islice(remaining, int(length))) for length in packed["episodes"]]
