"""Exploration among plausible candidates: probabilities above a floor, and draws by them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surefoot.data.kinds import POSITIVE, Interval, real
from surefoot.data.knobs import Config, knob


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplorationConfig(Config):
    """How policies that expect a reward of each candidate explore."""

    sharpness: float = knob(
        80.0,
        "Logits per unit of expected reward. A candidate that is 0.05 worse is drawn e^4 times less often at 80; "
        "lower explores more and costs more.",
        real(POSITIVE),
    )
    floor: float = knob(
        0.02,
        "Candidates less likely than this are not drawn at all, so that exploring stays among the plausible ones.",
        real(Interval(0, 0.5)),
    )


def softmax(logits: np.ndarray) -> np.ndarray:
    """Return probabilities, [K]."""
    raised = np.exp(logits - logits.max())
    return raised / raised.sum()


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Return log-probabilities, […, K]; finite also where the probability underflows."""
    lowered = logits.astype(np.float64) - logits.max(axis=-1, keepdims=True)
    return lowered - np.log(np.exp(lowered).sum(axis=-1, keepdims=True))


def spread(logits: np.ndarray, floor: float) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities over the candidates that reach `floor`, and which those are; the likeliest always does."""
    probabilities = softmax(logits)
    plausible = probabilities >= min(floor, float(probabilities.max()))
    remaining = np.where(plausible, probabilities, 0.0)
    return remaining / remaining.sum(), plausible


def draw(probabilities: np.ndarray, generator: np.random.Generator) -> int:
    """Draw one index by inversion: a tenth of the time of `generator.choice`."""
    at = int(probabilities.cumsum().searchsorted(generator.random(), side="right"))
    # Rounding may leave the sum below 1; the draw is then the last candidate with a probability.
    return at if at < len(probabilities) else int(np.flatnonzero(probabilities)[-1])


def softmax_with_none(logits: np.ndarray, valid: np.ndarray, none: float) -> np.ndarray:
    """Return the softmax over the valid candidates and "none", [B, K + 1]; "none" is the last column."""
    full = np.empty((len(logits), logits.shape[1] + 1), np.float32)
    # -1e9 and not -inf: differences stay finite, and the exponential is exactly 0.
    full[:, :-1], full[:, -1] = np.where(valid, logits, np.float32(-1e9)), none
    full -= full.max(axis=1, keepdims=True)
    np.exp(full, out=full)
    full /= full.sum(axis=1, keepdims=True)
    return full
