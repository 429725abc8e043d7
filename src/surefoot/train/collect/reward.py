"""Rewards as the learner gets them: scaled by the spread of the discounted return; outliers are counted."""

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
    """r ↦ clip(r / std of the discounted return, ±clip). No mean is subtracted: that would change the task.

    A rollout is scaled by one number, computed after the rollout was counted (details N8, N9). `gamma` must be the
    learner's (P32). Both kinds of episode ends restart a stream's return (gymnasium#760).
    """

    def __init__(self, streams: int, *, gamma: float, clip: float, moments: Moments | None = None) -> None:
        """`moments` computes the moments of new returns; processes that learn together share theirs."""
        self.gamma, self.clip = gamma, clip
        self._moments = moments or moments_of
        self.running = np.zeros(streams)
        self.mean, self.var, self.count = 0.0, 1.0, 0.0

    def scale(self, reward: np.ndarray, ended: np.ndarray, valid: np.ndarray) -> np.ndarray:
        """Count the raw rewards of a rollout, [T, N], and return them scaled. Invalid rows are not counted."""
        returns = np.zeros_like(reward)
        for t in range(len(reward)):
            self.running = np.where(valid[t], self.running * self.gamma + reward[t], self.running)
            returns[t] = self.running
            self.running = np.where(ended[t] | ~valid[t], 0.0, self.running)
        for moments in self._moments(returns[valid]):
            self.merge(*moments)
        # 1e-8 is VecNormalize's epsilon; it only matters while all rewards are equal.
        return np.clip(reward / np.sqrt(self.var + 1e-8), -self.clip, self.clip)

    def merge(self, mean: float, var: float, count: float) -> None:
        """Add `count` returns of which only mean and variance are known (Chan et al. 1979, in float64)."""
        total = self.count + count
        delta = mean - self.mean
        self.var = (self.var * self.count + var * count + delta * delta * self.count * count / total) / total
        self.mean += delta * count / total
        self.count = total

    def state(self) -> dict[str, Any]:
        return {"running": self.running.copy(), "mean": self.mean, "var": self.var, "count": self.count}

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""
        mean, var, count = (float(state[name]) for name in ("mean", "var", "count"))
        if var < 0.0 or count < 0.0:
            raise ValueError(f"the variance of the returns is {var} over {count} returns; neither can be negative")
        self.running, self.mean, self.var, self.count = np.array(state["running"]), mean, var, count


class OutlierWatch:
    """Counts rewards further than 20 running standard deviations from the running mean; changes nothing.

    An outlier widens the scale only as much as a reward at the limit would: a single mistake is counted as one, and a
    large reward that comes again and again soon counts as a part of the task.
    """

    # Lower would report sparse rewards as mistakes, higher would miss wrong units. It only counts; learning is the same.
    LIMIT = 20.0
    # With fewer rewards the deviation is too uncertain to call anything an outlier.
    WARM_UP = 100

    def __init__(self) -> None:
        self.mean, self.squares, self.count = 0.0, 0.0, 0

    def count_in(self, reward: np.ndarray) -> int:
        """Add rewards, [M], and return how many of them are outliers; none as long as all rewards were equal."""
        if len(reward) == 0:
            return 0
        outliers = 0
        if self.count >= self.WARM_UP and self.squares > 0.0:
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
        return {"mean": self.mean, "squares": self.squares, "count": self.count}

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""
        self.mean, self.squares, self.count = state["mean"], state["squares"], state["count"]
