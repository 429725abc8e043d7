"""Confidence: the chance that a candidate is right against "outside", the case that the query fits no candidate.

    z_out = s m + u · [x, 0.3]        confidence of a = e^{z_a} / (Σ_b e^{z_b} + e^{z_out})

The policy's own "none" only explains failures; few outcomes tell about queries that fit nothing. The level of "outside" is
learned from every success instead: with the right option among the candidates it should be unlikely, without it, likely.
"""

from __future__ import annotations

import math

import numpy as np

from surefoot.decide.policy.outcome_model import BIAS

# Step per outcome; the gradient lies in -1 … 1. Between 0.05 and 0.2 the detection of foreign queries hardly differs.
RATE = 0.1
# Pull of the part that depends on the query, per outcome: it remembers some thousand outcomes.
DECAY = 3e-4


def against_outside(chance: float, logit: float, none: float, outside: float) -> float:
    """Return the chance of a candidate against "outside", from its `chance` against "none"; the others are logits."""
    # 1 / chance is a sum of exponentials relative to the candidate's own, of which only that of "none" is replaced.
    # 60: float64 overflows at exp(709), and a chance of 1e-26 is as good as 0.
    raised, lowered = math.exp(min(outside - logit, 60.0)), math.exp(min(none - logit, 60.0))
    return 1.0 / max(1.0 / max(chance, 1e-30) + raised - lowered, 1.0)


def moved_outside(
    level: np.ndarray, none: float, chance: np.ndarray, at: np.ndarray, success: np.ndarray, x: np.ndarray
) -> np.ndarray:
    """Return u after new outcomes that the policy has not learned from yet, [d + 1].

    Its constant part is learned from two questions per success: "is one of them right?" (yes) and the same without the right
    one (no). The part that depends on the query is learned from the outcomes: it rises where answers fail.

    Args:
        level: u so far.
        none: The policy's n, against which `chance` is computed.
        chance: [B, K + 1], of each candidate and of "none".
        at: [B], the chosen candidates.
        success: [B], their rewards.
        x: [B, d + 1], the queries with the constant feature.
    """
    rows = np.arange(len(chance))
    taken = chance[rows, at]
    # As a multiple of the chance of "none", so that no logit is computed again. 1e-30: float32 has hardly less.
    raised = np.exp(np.clip(x @ level - BIAS * none, -60.0, 60.0)) * np.maximum(chance[:, -1], 1e-30)
    others = chance[:, :-1].copy()
    others[rows, at] = 0.0
    without = np.maximum(others.sum(axis=1), 1e-30)
    total = raised + without + taken
    outside = raised / total
    # 0.02: as in the policy's own step, a failure counts at most as much as a success.
    failed = np.minimum(outside * taken / np.maximum(total - taken, 0.02 * total), 1.0)
    moved = np.float32((1.0 - DECAY) ** len(x)) * level
    moved += np.float32(RATE) * ((1.0 - success) * failed - success * outside) @ x
    moved[-1] = level[-1] + RATE / BIAS * float((success * (without / (raised + without) - outside)).sum())
    return moved.astype(np.float32)
