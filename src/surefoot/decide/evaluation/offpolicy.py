"""What a policy would have earned, from the decisions of another one: IPS, SNIPS, DM and DR, with intervals.

    w = π(a|x) / μ(a|x)
    IPS    mean(w r)                              unbiased, wide
    SNIPS  Σ w r / Σ w                            a little biased, narrower
    DM     mean(V_q),  V_q = Σ_a π(a|x) q(x, a)   as good as its model; its interval knows nothing of the model's error
    DR     mean(V_q + w (r - q(x, a)))            unbiased if the propensities or the model are right

Everything rests on the logged probabilities being the true ones, and on μ having tried what π would do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from surefoot.decide.policy.experience_log import Logged
from surefoot.decide.policy.outcome_model import OutcomeModel, Scene
from surefoot.errors import DecisionError

ENOUGH = 500.0
"""Effective sample size below which no verdict is given: intervals of weighted means are too narrow there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean reward and the interval it lies in, at the confidence asked for."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OffPolicyEvaluation:
    """All four estimates of one policy on one log."""

    decisions: int
    effective_sample_size: float
    """(Σ w)² / Σ w²: as many decisions of π itself would tell as much."""
    largest_weight: float
    logged: Estimate
    """What was really earned, by the policy that acted."""
    ips: Estimate
    snips: Estimate
    dm: Estimate
    dr: Estimate
    confidence: float

    @property
    def enough(self) -> bool:
        """True if the effective sample size allows a verdict."""
        return self.effective_sample_size >= ENOUGH


def evaluate(
    reward: np.ndarray,
    logged: np.ndarray,
    target: np.ndarray,
    predicted: np.ndarray,
    expected: np.ndarray,
    *,
    confidence: float = 0.95,
) -> OffPolicyEvaluation:
    """Four estimates from n decisions; every array is [n].

    `logged` and `target`: probability of the action taken by the policy that acted and by the one in question.
    `predicted`: the model's reward of the action taken. `expected`: the model's reward of the policy in question.
    """
    weight = weights(logged, target)
    size = sample_size(weight)
    total = weight.sum()
    snips = float((weight * reward).sum() / total) if total > 0 else math.nan
    # Delta method: the mean of w (r - snips) / mean(w) has the variance of the ratio.
    around = weight * (reward - snips) / weight.mean() if total > 0 else np.full(len(reward), math.nan)
    return OffPolicyEvaluation(
        decisions=len(reward),
        effective_sample_size=size,
        largest_weight=float(weight.max()),
        logged=interval(reward, confidence),
        ips=interval(weight * reward, confidence, size),
        snips=interval(around + snips, confidence, size),
        dm=interval(expected, confidence),
        dr=interval(expected + weight * (reward - predicted), confidence, size),
        confidence=confidence,
    )


def weights(logged: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Importance weights; a log without true propensities is refused."""
    if len(logged) == 0:
        raise DecisionError("the log is empty; there is nothing to evaluate a policy on")
    if not (np.isfinite(logged).all() and (logged > 0).all()):
        raise DecisionError(
            f"{int((~(logged > 0)).sum())} of {len(logged)} logged probabilities are not above 0; decisions of a greedy or "
            "Thompson policy cannot be evaluated with: log with the PPO or the ε-greedy chooser"
        )
    return np.asarray(target / logged, np.float64)


def sample_size(weight: np.ndarray) -> float:
    """Kish's effective sample size."""
    squares = float((weight**2).sum())
    return float(weight.sum()) ** 2 / squares if squares > 0 else 0.0


def interval(sample: np.ndarray, confidence: float, size: float | None = None) -> Estimate:
    """Mean of a sample by Student's t; degrees of freedom are the effective sample size, where that is smaller."""
    n = len(sample)
    mean = float(sample.mean())
    if n < 2:
        return Estimate(value=mean, low=-math.inf, high=math.inf)
    freedom = max(1.0, min(n, n if size is None else size) - 1.0)
    half = student(0.5 + confidence / 2, freedom) * float(sample.std(ddof=1)) / math.sqrt(n)
    return Estimate(value=mean, low=mean - half, high=mean + half)


def student(p: float, freedom: float) -> float:
    """Quantile of Student's t, by the expansion around the normal one (Abramowitz and Stegun 26.7.5)."""
    z, v = NormalDist().inv_cdf(p), max(freedom, 3.0)
    g1 = (z**3 + z) / 4
    g2 = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    g3 = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + g1 / v + g2 / v**2 + g3 / v**3


Target = Callable[[Logged], np.ndarray]
"""[B, K]: the probabilities of the policy in question."""


def per_decision(
    log: Logged, target: Target, model: Callable[[], OutcomeModel], *, folds: int = 2
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return [B] each: the model's reward of the action taken, of the policy in question, and its probability of it.

    The model never predicts a decision that it has learned from: it is fitted on the other folds only, because on its
    training data it would explain the rewards away.
    """
    count = len(log)
    probabilities = target(log)
    predicted, expected = np.zeros(count), np.zeros(count)
    fold = np.arange(count) * folds // max(count, 1)
    for each in range(folds):
        fitted = model()
        for i in np.flatnonzero(fold != each):
            fitted.learn(_scene(log, int(i)), int(log.at[i]), float(log.reward[i]))
        for i in np.flatnonzero(fold == each):
            worth = fitted.predict(_scene(log, int(i)))
            predicted[i] = worth[log.at[i]]
            expected[i] = probabilities[i, : len(worth)] @ worth
    return predicted, expected, probabilities[np.arange(count), log.at]


def _scene(log: Logged, i: int) -> Scene:
    own = log.valid[i]
    return Scene(x=log.x[i], option=log.option[i][own], cosine=log.cosine[i][own])
