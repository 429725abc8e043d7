"""Cosines of vectors whose encoder is unknown: their scale is estimated from the cosines that are observed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from surefoot.decide.encoders.encoder import Likeness
from surefoot.errors import EncoderError

# Cosines are divided by their deviation within a decision, so these are in deviations. With 1.5 an agent that does not know its
# encoder is within half a point of one that does (hashing and MiniLM, ten topics of CLINC150 and banking77); 2.0 loses 0.9
# points more with the hashing encoder.
RELATIVE = Likeness(sharpness=1.5, slope=1.2, middle=1.5, relative=True)
# Decisions after which the estimate is kept: the meaning of logged cosines must not move for ever.
_SETTLED = 200
# What is assumed before anything was observed, with the weight of this many decisions. Most encoders are near it.
_MEAN, _DEVIATION, _ASSUMED = 0.2, 0.1, 2.0


class CosineScale:
    """Running mean and deviation of the cosines within a decision."""

    def __init__(self) -> None:
        self.count, self.mean, self.variance = 0, _MEAN, _DEVIATION**2

    @property
    def settled(self) -> bool:
        """True if the estimate no longer changes."""
        return self.count >= _SETTLED

    @property
    def deviation(self) -> float:
        """Deviation within a decision; at least 1e-4: vectors that are all the same would otherwise divide by 0."""
        return max(float(np.sqrt(self.variance)), 1e-4)

    def __call__(self, cosine: np.ndarray, *, observe: bool = True) -> np.ndarray:
        """Return the cosines of a decision, [K], in deviations from the mean; 0 is a choice without a description."""
        known = cosine != 0.0
        if not known.any():
            return cosine
        values = cosine[known]
        if observe and self.count < _SETTLED and len(values) > 1:
            self.count += 1
            # At least 1/50: what was assumed at first has no weight in the end.
            share = max(1.0 / (self.count + _ASSUMED), 0.02)
            self.mean += share * (float(values.mean()) - self.mean)
            self.variance += share * (float(values.var(ddof=1)) - self.variance)
        scaled = (cosine - np.float32(self.mean)) / np.float32(self.deviation)
        return np.where(known, scaled, np.float32(0.0)).astype(np.float32)

    def state(self) -> dict[str, Any]:
        return {"count": self.count, "mean": self.mean, "variance": self.variance}

    def set_state(self, state: dict[str, Any]) -> None:
        self.count, self.mean, self.variance = int(state["count"]), float(state["mean"]), float(state["variance"])


class GivenVectors:
    """The encoder of an agent whose caller computes the vectors: it has a size, and encodes nothing."""

    def __init__(self, dim: int, *, prior: float = 1.0) -> None:
        """`prior`: how much descriptions count before anything is learned, as a multiple of the usual; 0: nothing."""
        self.name, self.dim = f"given-{dim}", dim
        usual = RELATIVE
        self.likeness = Likeness(prior * usual.sharpness, usual.slope, usual.middle, relative=True)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        raise EncoderError("this agent has no encoder of texts; pass vectors")
