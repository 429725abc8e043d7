"""Rewards as the learner gets them: clipped to their declared range, scaled by the spread of the discounted return."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Moments = Callable[[np.ndarray], Sequence[tuple[float, float, float]]]
"""Returns (mean, variance, count) of some numbers, once per group of them that is not empty."""


def moments_of(numbers: np.ndarray) -> list[tuple[float, float, float]]:
    """Return the moments of all numbers as one group."""
    return [(float(numbers.mean()), float(numbers.var()), float(len(numbers)))] if len(numbers) else []


class RewardScaler:
    """r ↦ clip(r / std of the discounted return, ±clip); no mean is subtracted, as that would change the task.

    A whole rollout is scaled by one number, taken after the rollout was counted in (details N8, N9). `gamma` must be
    the learner's own (P32). Episode ends of both kinds restart a stream's return (gymnasium#760).
    """

    def __init__(self, streams: int, *, gamma: float, clip: float, moments: Moments | None = None) -> None:
        """`moments` computes the moments of new returns; processes that learn together share theirs."""
        self.gamma, self.clip = gamma, clip
        self._moments = moments or moments_of
        self.running = np.zeros(streams)
        self.mean, self.var, self.count = 0.0, 1.0, 0.0

    def scale(self, reward: np.ndarray, ended: np.ndarray, valid: np.ndarray) -> np.ndarray:
        """Count a rollout's raw rewards ([T, N]) in, and give them scaled; ghost rows count for nothing."""
        returns = np.zeros_like(reward)
        for t in range(len(reward)):
            self.running = np.where(valid[t], self.running * self.gamma + reward[t], self.running)
            returns[t] = self.running
            self.running = np.where(ended[t] | ~valid[t], 0.0, self.running)
        for moments in self._moments(returns[valid]):
            self.merge(*moments)
        return np.clip(reward / np.sqrt(self.var + 1e-8), -self.clip, self.clip)

    def merge(self, mean: float, var: float, count: float) -> None:
        """Take in `count` more returns of which only these are known (Chan et al. 1979, in float64)."""
        total = self.count + count
        delta = mean - self.mean
        self.var = (self.var * self.count + var * count + delta * delta * self.count * count / total) / total
        self.mean += delta * count / total
        self.count = total

    def state(self) -> dict[str, Any]:
        """Everything that moves."""
        return {"running": self.running.copy(), "mean": self.mean, "var": self.var, "count": self.count}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from where `state` was taken."""
        self.running = np.array(state["running"])
        self.mean, self.var, self.count = state["mean"], state["var"], state["count"]


class OutlierWatch:
    """Counts rewards further than 20 running standard deviations from the running mean; changes nothing.

    An outlier widens the scale by as much as a reward at the limit would: one mistake is told from all that follows,
    a reward that keeps coming soon is the task.
    """

    LIMIT = 20.0

    def __init__(self) -> None:
        self.mean, self.squares, self.count = 0.0, 0.0, 0

    def count_in(self, reward: np.ndarray) -> int:
        """How many of these ([M]) stand out from all that came before.

        The first hundred only set the scale, and as long as all rewards were equal there is none.
        """
        if len(reward) == 0:
            return 0
        outliers = 0
        if self.count >= 100 and self.squares > 0.0:
            limit = self.LIMIT * np.sqrt(self.squares / self.count)
            if reward.max() - self.mean > limit or self.mean - reward.min() > limit:
                outliers = int((np.abs(reward - self.mean) > limit).sum())
                reward = np.clip(reward, self.mean - limit, self.mean + limit)
        total = self.count + len(reward)
        mean = float(np.add.reduce(reward)) / len(reward)
        delta, off = mean - self.mean, reward - mean
        self.squares += float(off @ off) + delta * delta * self.count * len(reward) / total
        self.mean += delta * len(reward) / total
        self.count = total
        return outliers

    def state(self) -> dict[str, Any]:
        """Everything that moves."""
        return {"mean": self.mean, "squares": self.squares, "count": self.count}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from where `state` was taken."""
        self.mean, self.squares, self.count = state["mean"], state["squares"], state["count"]
