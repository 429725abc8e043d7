"""How often a predicted worth came true: makes a threshold on it mean a success rate."""

from __future__ import annotations

from typing import Any

import numpy as np

BINS = 10


class Calibration:
    """Predictions and outcomes in ten bins over [0, 1], halved when old, so that it follows the policy of now."""

    def __init__(self, memory: int = 2000) -> None:
        self.memory = memory
        self.count, self.said, self.seen = np.zeros(BINS), np.zeros(BINS), np.zeros(BINS)
        self._known = self.curve()

    def add(self, said: float, seen: float) -> None:
        """`said` was predicted, `seen` came, both 0 … 1."""
        at = min(int(min(max(said, 0.0), 1.0) * BINS), BINS - 1)
        self.count[at] += 1
        self.said[at] += min(max(said, 0.0), 1.0)
        self.seen[at] += seen
        if self.count.sum() > self.memory:
            self.count, self.said, self.seen = self.count / 2, self.said / 2, self.seen / 2
        self._known = self.curve()  # here, so that who asks does not wait for it

    def __call__(self, said: float) -> float:
        """The success rate to expect where `said` is predicted; the prediction itself where nothing is known yet."""
        return float(np.interp(min(max(said, 0.0), 1.0), self._known[:, 0], self._known[:, 1]))

    def curve(self) -> np.ndarray:
        """[≤ 10, 2]: mean prediction and outcome of each bin, never falling (pooled where it would)."""
        weight = self.count + 2.0
        centre = (np.arange(BINS) + 0.5) / BINS
        # Two imagined outcomes that agree with the prediction keep an almost empty bin from shouting.
        x = (self.said + 2.0 * centre) / weight
        y = (self.seen + 2.0 * centre) / weight
        return np.stack([x, _rising(y, weight)], axis=1)

    def error(self) -> float:
        """Expected calibration error: mean distance of prediction and outcome, weighted by bin."""
        known = self.count > 0
        if not known.any():
            return float("nan")
        gap = np.abs(self.seen[known] - self.said[known]) / self.count[known]
        return float((gap * self.count[known]).sum() / self.count[known].sum())

    def state(self) -> dict[str, Any]:
        return {name: getattr(self, name).tolist() for name in ("count", "said", "seen")}

    def set_state(self, state: dict[str, Any]) -> None:
        for name in ("count", "said", "seen"):
            setattr(self, name, np.array(state[name], np.float64))
        self._known = self.curve()


def _rising(y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Isotonic regression by pooling neighbours that fall."""
    blocks: list[list[float]] = []
    for value, w in zip(y, weight, strict=True):
        blocks.append([float(value), float(w), 1.0])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            a, b = blocks[-2], blocks.pop()
            blocks[-1] = [(a[0] * a[1] + b[0] * b[1]) / (a[1] + b[1]), a[1] + b[1], a[2] + b[2]]
    return np.concatenate([np.full(int(n), value) for value, _, n in blocks])
