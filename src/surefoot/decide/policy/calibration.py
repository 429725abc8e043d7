"""Calibration: map predicted scores to observed success rates, so that a threshold on them is a success rate."""

from __future__ import annotations

from typing import Any

import numpy as np

# Ten bins are enough for a threshold in tenths, and each fills within a few hundred decisions.
BINS = 10
# Keys of saved policies and the attributes they belong to.
_STATE = {"count": "count", "said": "predicted", "seen": "observed"}


class Calibration:
    """Predictions and outcomes in ten bins over [0, 1]; counts are halved when old, so that it follows the current policy."""

    # More than 2,000 follows a changed policy more slowly; fewer makes the rates of the ten bins noisier.
    def __init__(self, memory: int = 2000) -> None:
        self.memory = memory
        self.count, self.predicted, self.observed = np.zeros(BINS), np.zeros(BINS), np.zeros(BINS)
        self._known = self.curve()

    def add(self, prediction: float, outcome: float) -> None:
        """Add one prediction and its outcome, both 0 … 1."""
        prediction = min(max(prediction, 0.0), 1.0)
        index = min(int(prediction * BINS), BINS - 1)
        self.count[index] += 1
        self.predicted[index] += prediction
        self.observed[index] += outcome
        if self.count.sum() > self.memory:
            self.count, self.predicted, self.observed = self.count / 2, self.predicted / 2, self.observed / 2
        # Computed when an outcome arrives, not when a decision is made: decisions must not wait for it.
        self._known = self.curve()

    def __call__(self, prediction: float) -> float:
        """Return the expected success rate for a prediction; the prediction itself without any data."""
        return float(np.interp(min(max(prediction, 0.0), 1.0), self._known[:, 0], self._known[:, 1]))

    def curve(self) -> np.ndarray:
        """Return the mean prediction and outcome of each bin, [≤ 10, 2], made non-decreasing by pooling."""
        weight = self.count + 2.0
        centre = (np.arange(BINS) + 0.5) / BINS
        # Two pseudo-outcomes equal to the prediction: without them the first outcome of a bin would set its rate to 0 or 1.
        x = (self.predicted + 2.0 * centre) / weight
        y = (self.observed + 2.0 * centre) / weight
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
        return {key: getattr(self, name).tolist() for key, name in _STATE.items()}

    def set_state(self, state: dict[str, Any]) -> None:
        for key, name in _STATE.items():
            setattr(self, name, np.array(state[key], np.float64))
        self._known = self.curve()


def _rising(y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Isotonic regression: pool adjacent violators."""
    blocks: list[list[float]] = []
    for value, w in zip(y, weight, strict=True):
        blocks.append([float(value), float(w), 1.0])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            a, b = blocks[-2], blocks.pop()
            blocks[-1] = [(a[0] * a[1] + b[0] * b[1]) / (a[1] + b[1]), a[1] + b[1], a[2] + b[2]]
    return np.concatenate([np.full(int(n), value) for value, _, n in blocks])
