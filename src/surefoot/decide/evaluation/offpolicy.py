"""Off-policy evaluation: estimate a policy's mean reward from another policy's decisions, with intervals.

    w = π(a|x) / μ(a|x)
    IPS    mean(w r)                              unbiased, high variance
    SNIPS  Σ w r / Σ w                            slightly biased, lower variance
    DM     mean(V_q),  V_q = Σ_a π(a|x) q(x, a)   as good as its model q; the interval ignores the model's error
    DR     mean(V_q + w (r - q(x, a)))            unbiased if the propensities or the model are right

All of them need the true logged probabilities μ(a|x), and a μ that has tried what π would do.
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

# Intervals of weighted means are too narrow in small samples; above this their coverage is about nominal. A larger value
# delays promotions, a smaller one lets a few large weights decide.
ENOUGH = 500.0
"""Smallest effective sample size that allows a verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean reward and its confidence interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OffPolicyEvaluation:
    """The four estimates of one policy on one log."""

    decisions: int
    effective_sample_size: float
    """Kish's (Σ w)² / Σ w²: the number of decisions by π itself that would be equally informative."""
    largest_weight: float
    logged: Estimate
    """Mean reward of the logging policy."""
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
    """Return the four estimates from n decisions; every array is [n].

    Args:
        reward: Reward of the action that was taken.
        logged: Probability of that action under the logging policy μ.
        target: Probability of that action under the evaluated policy π.
        predicted: q(x, a), the model's reward of that action.
        expected: V_q(x), the model's reward of π.
        confidence: Level of the intervals.
    """
    weight = weights(logged, target)
    size = sample_size(weight)
    total = weight.sum()
    snips = float((weight * reward).sum() / total) if total > 0 else math.nan
    # Delta method: the mean of w (r - snips) / mean(w) has the variance of the ratio estimator.
    influence = weight * (reward - snips) / weight.mean() if total > 0 else np.full(len(reward), math.nan)
    return OffPolicyEvaluation(
        decisions=len(reward),
        effective_sample_size=size,
        largest_weight=float(weight.max()),
        logged=interval(reward, confidence),
        ips=interval(weight * reward, confidence, size),
        snips=interval(influence + snips, confidence, size),
        dm=interval(expected, confidence),
        dr=interval(expected + weight * (reward - predicted), confidence, size),
        confidence=confidence,
    )


def weights(logged: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return the importance weights π/μ; raise `DecisionError` if a logged probability is missing or 0."""
    if len(logged) == 0:
        raise DecisionError("the log is empty; a policy needs logged decisions to be evaluated on")
    if not (np.isfinite(logged).all() and (logged > 0).all()):
        raise DecisionError(
            f"{int((~(logged > 0)).sum())} of {len(logged)} logged probabilities are not above 0; greedy and Thompson "
            "policies log none. Collect the log with the PPO or the ε-greedy chooser."
        )
    return np.asarray(target / logged, np.float64)


def sample_size(weight: np.ndarray) -> float:
    """Return Kish's effective sample size, 0 if all weights are 0."""
    squares = float((weight**2).sum())
    return float(weight.sum()) ** 2 / squares if squares > 0 else 0.0


def interval(sample: np.ndarray, confidence: float, size: float | None = None) -> Estimate:
    """Return mean and Student's t interval; the degrees of freedom are min(n, effective sample size `size`) - 1."""
    n = len(sample)
    mean = float(sample.mean())
    if n < 2:
        return Estimate(value=mean, low=-math.inf, high=math.inf)
    freedom = max(1.0, min(n, n if size is None else size) - 1.0)
    half = student(0.5 + confidence / 2, freedom) * float(sample.std(ddof=1)) / math.sqrt(n)
    return Estimate(value=mean, low=mean - half, high=mean + half)


def student(p: float, freedom: float) -> float:
    """Return the p-quantile of Student's t, by expansion around the normal quantile (Abramowitz and Stegun 26.7.5)."""
    # For p = 0.975 the expansion is 1 % below the table at 3 degrees of freedom, 3 % at 2 and 24 % at 1.
    z, v = NormalDist().inv_cdf(p), max(freedom, 3.0)
    g1 = (z**3 + z) / 4
    g2 = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    g3 = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + g1 / v + g2 / v**2 + g3 / v**3


Target = Callable[[Logged], np.ndarray]
"""Returns the evaluated policy's probabilities, [B, K]."""


def per_decision(
    log: Logged, target: Target, model: Callable[[], OutcomeModel]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return q(x, a) of the action taken, V_q(x) of the policy, and π(a|x) of the action taken; [B] each.

    Cross-fitted: the model that predicts a decision has learned from the other half of the log only. On its own training
    data it would reproduce the rewards, and the correction term of DR would vanish.
    """
    count = len(log)
    probabilities = target(log)
    predicted, expected = np.zeros(count), np.zeros(count)
    # Contiguous halves keep neighbouring, possibly related decisions on the same side.
    halves = range((count + 1) // 2), range((count + 1) // 2, count)
    for half, other in (halves, halves[::-1]):
        fitted = model()
        for i in other:
            fitted.learn(_scene(log, i), int(log.at[i]), float(log.reward[i]))
        for i in half:
            value = fitted.predict(_scene(log, i))
            predicted[i] = value[log.at[i]]
            expected[i] = probabilities[i, : len(value)] @ value
    return predicted, expected, probabilities[np.arange(count), log.at]


def _scene(log: Logged, i: int) -> Scene:
    valid = log.valid[i]
    return Scene(x=log.x[i], option=log.option[i][valid], cosine=log.cosine[i][valid])
