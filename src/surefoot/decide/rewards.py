"""Reward of a tool run in [-1, 1], with the parts it is the sum of.

    R = base · confidence + quality · score + efficiency · e + errors · n + warnings · n + timeout
    e = 1 - d/b within the time budget b, and -½ min((d - b)/b, 1) beyond it; a timeout is d > 2b

Explicit feedback replaces the formula: `rating` first, then `helpful`, `success` and `outcome`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from surefoot.errors import ConfigError

Feedback = Mapping[str, Any]

GOOD_OUTCOMES = ("success", "succeeded", "answered_question", "answered", "solved", "accepted", "ok", "true", "yes")


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardConfig:
    """Weights of the reward's parts.

    The defaults make a confident, fast run without a quality score about 0.65, and one error cost more than any
    speed gains.
    """

    base_weight: float = 0.6
    quality_weight: float = 0.3
    efficiency_weight: float = 0.1
    error_penalty: float = -0.5
    """Per error."""
    warning_penalty: float = -0.1
    """Per warning."""
    timeout_penalty: float = -0.3
    time_budget_ms: float = 1000.0
    min_reward: float = -1.0
    max_reward: float = 1.0
    quality_fallback: bool = False
    """Use the confidence if there is no quality score; otherwise a missing score adds nothing."""

    def __post_init__(self) -> None:
        if not self.time_budget_ms > 0:
            raise ConfigError(f"time_budget_ms is {self.time_budget_ms}; it must be above 0")
        if not self.min_reward < self.max_reward:
            raise ConfigError(
                f"min_reward is {self.min_reward} and max_reward {self.max_reward}; min_reward must be below max_reward"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardFacts:
    """Measurements of one run that its reward is computed from."""

    confidence: float
    duration_ms: float = 0.0
    quality: float | None = None
    errors: int = 0
    warnings: int = 0
    sources: Sequence[str] = ()
    """Ids of the passages that the answer used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reward:
    """A reward, its parts, and where it comes from."""

    value: float
    parts: dict[str, float] = field(default_factory=dict[str, float])
    said_by: str = "formula"
    """formula, rating, helpful, success or outcome."""

    @property
    def unit(self) -> float:
        """The reward scaled to [0, 1]."""
        return min(max((self.value + 1.0) / 2.0, 0.0), 1.0)


def reward_of(facts: RewardFacts, feedback: Feedback | None = None, config: RewardConfig | None = None) -> Reward:
    """Return the reward of one run; feedback takes precedence over the formula."""
    config, feedback = config or RewardConfig(), {} if feedback is None else feedback
    if not isinstance(feedback, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  # an easy mistake
        raise ConfigError(
            f'feedback is {feedback!r}; it must be a dict such as {{"rating": 5}}, and a number is the reward'
        )
    parts = formula_parts(facts, feedback, config)
    source, value = explicit_reward(feedback) or ("formula", sum(parts.values()))
    clipped = min(max(value, config.min_reward), config.max_reward)
    return Reward(value=clipped, parts=parts, said_by=source)


def formula_parts(facts: RewardFacts, feedback: Feedback, config: RewardConfig) -> dict[str, float]:
    """Return every term of R by name, before clipping."""
    quality = quality_of(facts, feedback)
    if quality is None and config.quality_fallback:
        quality = facts.confidence
    parts = {
        "confidence": config.base_weight * facts.confidence,
        "quality": config.quality_weight * quality if quality is not None else 0.0,
        "efficiency": config.efficiency_weight * efficiency(facts.duration_ms, config.time_budget_ms),
        "errors": config.error_penalty * facts.errors,
        "warnings": config.warning_penalty * facts.warnings,
        "timeout": config.timeout_penalty if facts.duration_ms > 2 * config.time_budget_ms else 0.0,
    }
    for name, value in parts.items():
        if not math.isfinite(value):
            raise ConfigError(f"the reward's part {name!r} is {value}; confidence, quality and duration must be finite")
    return parts


def efficiency(duration_ms: float, budget_ms: float) -> float:
    """Return 1 for no time, 0 at the budget, and -½ at twice the budget and beyond."""
    if duration_ms <= budget_ms:
        return 1.0 - duration_ms / budget_ms
    return -0.5 * min((duration_ms - budget_ms) / budget_ms, 1.0)


def quality_of(facts: RewardFacts, feedback: Feedback) -> float | None:
    """Return the mean of the available scores: the run's, `relevance`, and the share of sources in `selected`."""
    scores = [] if facts.quality is None else [float(facts.quality)]
    if (relevance := feedback.get("relevance")) is not None:
        scores.append(_between("relevance", relevance, 0.0, 1.0))
    if (selected := feedback.get("selected")) is not None:
        if isinstance(selected, str) or not isinstance(selected, Sequence):
            raise ConfigError(f"feedback 'selected' is {selected!r}; it must be a list of ids")
        chosen = {str(each) for each in cast(Sequence[Any], selected)}
        # Without sources there is no share; having selected anything counts as a full score.
        scores.append(len(chosen & set(facts.sources)) / len(facts.sources) if facts.sources else float(bool(chosen)))
    return sum(scores) / len(scores) if scores else None


def explicit_reward(feedback: Feedback) -> tuple[str, float] | None:
    """Return the feedback key that decides and its reward; None if the feedback has no such key."""
    # The most explicit statement wins.
    if (rating := feedback.get("rating")) is not None:
        return "rating", _rated("rating", rating)
    helpful = feedback.get("helpful")
    if isinstance(helpful, bool):
        return "helpful", 1.0 if helpful else -1.0
    if helpful is not None:
        return "helpful", _rated("helpful", helpful)
    if (success := feedback.get("success")) is not None:
        if not isinstance(success, bool):
            raise ConfigError(f"feedback 'success' is {success!r}; it must be True or False")
        return "success", 1.0 if success else -1.0
    if (outcome := feedback.get("outcome")) is not None:
        return "outcome", 1.0 if str(outcome).lower() in GOOD_OUTCOMES else -1.0
    return None


def shaped(reward: float, potential: float, next_potential: float, *, gamma: float, terminated: bool) -> float:
    """Return r + γ φ(s') - φ(s), with φ = 0 after the end.

    Potential-based shaping changes the speed of learning, never the optimal policy (Ng et al. 1999).
    """
    return reward + gamma * (0.0 if terminated else next_potential) - potential


def potential(confidence: float, threads: int, errors: int) -> float:
    """Return φ = 0.6 confidence + 0.3 min(threads/10, 1) - 0.1 min(0.2 errors, 1)."""
    return 0.6 * confidence + 0.3 * min(threads / 10.0, 1.0) - 0.1 * min(errors * 0.2, 1.0)


def _rated(name: str, value: Any) -> float:
    # Ratings are stars, 0 … 5; rewards are -1 … 1.
    return 2.0 * _between(name, value, 0.0, 5.0) / 5.0 - 1.0


def _between(name: str, value: Any, low: float, high: float) -> float:
    # bool is an int in Python, and True is not a rating.
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ConfigError(f"feedback {name!r} is {value!r}; it must be a number from {low:g} to {high:g}")
    return min(max(float(value), low), high)
