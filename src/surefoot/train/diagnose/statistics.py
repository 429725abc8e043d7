"""Summarize scores over several seeds: interquartile mean and bootstrap interval (Agarwal et al. 2021). Counts and medians."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from surefoot.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Summary:
    """Statistics of the scores of several seeds."""

    iqm: float
    low: float
    high: float
    """95 % bootstrap interval of the IQM over seeds."""
    mean: float
    minimum: float
    maximum: float
    count: int

    def __str__(self) -> str:
        return (
            f"IQM {self.iqm:.1f}  95% [{self.low:.1f}, {self.high:.1f}]  mean {self.mean:.1f}  "
            f"min {self.minimum:.1f}  max {self.maximum:.1f}  n={self.count}"
        )


def iqm(scores: Sequence[float] | np.ndarray) -> float:
    """Return the mean of the middle half; if a quarter is not a whole number of scores, those at its edges count in part."""
    return float(iqms(np.asarray(scores, dtype=np.float64)[None])[0])


def iqms(scores: np.ndarray) -> np.ndarray:
    """Return the interquartile mean of each row of [R, N], [R]."""
    ordered, count = np.sort(scores, axis=1), scores.shape[1]
    if count == 0:
        raise ConfigError("an interquartile mean needs at least one score")
    cut, rank = count / 4.0, np.arange(count)
    # The share of each score that lies between the quartiles: 0, 1, or a fraction at the two edges.
    weight = np.clip(np.minimum(rank + 1 - cut, count - cut - rank), 0, 1)
    # Not only weight 0: a score that does not count may be infinite, and 0 · inf is NaN.
    return (np.where(weight > 0, ordered, 0.0) * weight).sum(axis=1) / weight.sum()


def summarize(scores: Sequence[float], *, resamples: int = 2000, seed: int = 0) -> Summary:
    """Return the IQM with its percentile bootstrap interval, the mean and the extremes.

    Args:
        scores: One score per seed.
        resamples: Bootstrap samples of the interval. More make it smoother and slower.
        seed: Seed of the bootstrap. It is fixed by default, so the same scores always give the same interval.
    """
    values = np.asarray(scores, dtype=np.float64)
    rng = np.random.default_rng(seed)
    draws = rng.choice(values, size=(resamples, len(values)), replace=True) if len(values) else values[None]
    low, high = np.percentile(iqms(draws), [2.5, 97.5])
    return Summary(
        iqm(values),
        float(low),
        float(high),
        float(values.mean()),
        float(values.min()),
        float(values.max()),
        len(values),
    )


# np.unique and np.median import numpy.ma, which takes longer than all tests of an environment.
def distinct_rows(rows: np.ndarray) -> int:
    """Return how many different rows there are."""
    if rows.shape[1] == 1 and len(rows):
        ordered = np.sort(rows[:, 0])
        return 1 + int(np.count_nonzero(ordered[1:] != ordered[:-1]))
    numbers = np.ascontiguousarray(rows + 0.0)  # -0.0 becomes 0.0, whose bytes are others
    return len(set(numbers.view(f"V{numbers.strides[0]}").ravel().tolist())) if numbers.size else min(1, len(numbers))


def median(numbers: np.ndarray) -> float:
    """Return the median."""
    ordered, n = np.sort(numbers), len(numbers)
    return float(ordered[(n - 1) // 2] + ordered[n // 2]) / 2.0
