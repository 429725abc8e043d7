"""Scores over several seeds, told honestly: interquartile mean and a bootstrap interval (Agarwal et al. 2021)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from surefoot.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Summary:
    """What several seeds say together."""

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
    """Mean of the middle half; where a quarter is no whole number of scores, they count in part."""
    return float(iqms(np.asarray(scores, dtype=np.float64)[None])[0])


def iqms(scores: np.ndarray) -> np.ndarray:
    """The interquartile mean of every row of [R, N]; the result is [R]."""
    ordered, count = np.sort(scores, axis=1), scores.shape[1]
    if count == 0:
        raise ConfigError("an interquartile mean needs at least one score")
    cut, place = count / 4.0, np.arange(count)
    # How much of each score lies between the quartiles: 0, 1, or a fraction at the two edges.
    weight = np.clip(np.minimum(place + 1 - cut, count - cut - place), 0, 1)
    # A score that does not count may be infinite.
    return (np.where(weight > 0, ordered, 0.0) * weight).sum(axis=1) / weight.sum()


def summarize(scores: Sequence[float], *, resamples: int = 2000, seed: int = 0) -> Summary:
    """IQM with its percentile bootstrap interval, and the extremes."""
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
