"""Calibration: map predicted scores to observed success rates, and say how many successes a threshold would have lost."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

# Half a logit per bin, from 0.2 % to 99.8 %: equal steps of probability would put all queries that fit nothing into one bin.
BINS, WIDTH = 25, 0.5
_CENTRE = 1.0 / (1.0 + np.exp(-WIDTH * (np.arange(BINS) - BINS // 2)))
# Keys of saved policies and the attributes they belong to.
_STATE = {"count": "count", "said": "predicted", "seen": "observed", "successes": "successes"}


def _place(prediction: float) -> float:
    """Return the position of a prediction in bins, 0 … BINS."""
    clipped = min(max(prediction, 1e-9), 1.0 - 1e-9)
    return min(max(math.log(clipped / (1.0 - clipped)) / WIDTH + BINS / 2, 0.0), BINS - 1e-9)


class Calibration:
    """Predictions and outcomes in bins of half a logit; counts are halved when old, so that it follows the current policy."""

    # More than 2,000 follows a changed policy more slowly; fewer makes the rates of the bins noisier.
    def __init__(self, memory: int = 2000) -> None:
        self.memory, self.outcomes = memory, 0
        self.count, self.predicted, self.observed, self.successes = np.zeros((4, BINS))
        self._known = self.curve()

    def add(self, prediction: float, outcome: float, weight: float = 1.0) -> None:
        """Add one prediction and its outcome, both 0 … 1; it stands for `weight` decisions like it."""
        prediction = min(max(prediction, 0.0), 1.0)
        index = int(_place(prediction))
        self.outcomes += 1
        self.count[index] += 1
        self.predicted[index] += prediction
        self.observed[index] += outcome
        # Only here: the rate of a bin is the same for those that were answered and those that were not.
        self.successes[index] += weight * outcome
        if self.count.sum() > self.memory:
            for name in _STATE.values():
                setattr(self, name, getattr(self, name) / 2)
        # Computed when an outcome arrives, not when a decision is made: decisions must not wait for it. One outcome more hardly
        # moves a curve that has many.
        if self.outcomes < 64 or self.outcomes % 8 == 0:
            self._known = self.curve()

    def __call__(self, prediction: float) -> float:
        """Return the expected success rate for a prediction; the prediction itself without any data."""
        return float(np.interp(min(max(prediction, 0.0), 1.0), self._known[:, 0], self._known[:, 1]))

    def lost(self, prediction: float) -> float:
        """Return the share of past successes whose prediction was lower; 1 without any."""
        total = float(self.successes.sum())
        if total <= 0.0:
            return 1.0
        place = _place(prediction)
        index = int(place)
        return float(self.successes[:index].sum() + (place - index) * self.successes[index]) / total

    def curve(self) -> np.ndarray:
        """Return the mean prediction and outcome of each bin, [BINS, 2], made non-decreasing by pooling."""
        weight = self.count + 2.0
        # Two pseudo-outcomes equal to the prediction: without them the first outcome of a bin would set its rate to 0 or 1.
        x = (self.predicted + 2.0 * _CENTRE) / weight
        y = (self.observed + 2.0 * _CENTRE) / weight
        # Non-decreasing: otherwise a threshold could reject a higher prediction and accept a lower one.
        return np.stack([x, _rising(y, weight)], axis=1)

    def error(self) -> float:
        """Return the expected calibration error: the mean distance of prediction and outcome, weighted by bin."""
        known = self.count > 0
        if not known.any():
            return float("nan")
        gap = np.abs(self.observed[known] - self.predicted[known]) / self.count[known]
        return float((gap * self.count[known]).sum() / self.count[known].sum())

    def state(self) -> dict[str, Any]:
        return {"outcomes": self.outcomes, "curve": self._known.tolist()} | {
            key: getattr(self, name).tolist() for key, name in _STATE.items()
        }

    def set_state(self, state: dict[str, Any]) -> None:
        if len(state["count"]) != BINS:  # policies of earlier releases had ten equal bins: they start anew
            return
        for key, name in _STATE.items():
            setattr(self, name, np.array(state[key], np.float64))
        self.outcomes, self._known = int(state["outcomes"]), np.array(state["curve"])


def _rising(y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Isotonic regression: pool adjacent violators."""
    if (y[1:] >= y[:-1]).all():  # nearly always, after some hundred outcomes
        return y
    blocks: list[list[float]] = []
    for value, w in zip(y, weight, strict=True):
        blocks.append([float(value), float(w), 1.0])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            a, b = blocks[-2], blocks.pop()
            blocks[-1] = [(a[0] * a[1] + b[0] * b[1]) / (a[1] + b[1]), a[1] + b[1], a[2] + b[2]]
    return np.concatenate([np.full(int(n), value) for value, _, n in blocks])
