"""From what happened to one number in [-1, 1], with every part of it kept.

    R = base · confidence + quality · score + efficiency · e + errors · n + warnings · n + timeout
    e = 1 - d/b within the time budget b, and -½ min((d - b)/b, 1) beyond it; a timeout is d > 2b

What a person says outweighs all of it: `rating` first, then `helpful`, then `success` or `outcome`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from surefoot.errors import ConfigError

Feedback = Mapping[str, Any]

GOOD_OUTCOMES = ("success", "succeeded", "answered_question", "answered", "solved", "accepted", "ok", "true", "yes")


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardConfig:
    """What each part weighs."""

    base_weight: float = 0.6
    quality_weight: float = 0.3
    efficiency_weight: float = 0.1
    error_penalty: float = -0.5
    """An error."""
    warning_penalty: float = -0.1
    """A warning."""
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
                f"min_reward is {self.min_reward} and max_reward {self.max_reward}; the first must be the smaller one"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardFacts:
    """What is known of one decision when its reward is worked out."""

    confidence: float
    duration_ms: float = 0.0
    quality: float | None = None
    errors: int = 0
    warnings: int = 0
    sources: Sequence[str] = ()
    """Ids that the answer rested on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reward:
    """The number, what it is made of, and whose word it is."""

    value: float
    parts: dict[str, float] = field(default_factory=dict[str, float])
    said_by: str = "formula"
    """formula, rating, helpful, success or outcome."""

    @property
    def unit(self) -> float:
        """The same on [0, 1], the form the buffer has always shown."""
        return min(max((self.value + 1.0) / 2.0, 0.0), 1.0)


def reward_of(facts: RewardFacts, feedback: Feedback | None = None, config: RewardConfig | None = None) -> Reward:
    """The reward of one decision."""
    config, feedback = config or RewardConfig(), feedback or {}
    parts = formula_parts(facts, feedback, config)
    said = word_of(feedback)
    value = sum(parts.values()) if said is None else said[1]
    clipped = min(max(value, config.min_reward), config.max_reward)
    return Reward(value=clipped, parts=parts, said_by="formula" if said is None else said[0])


def formula_parts(facts: RewardFacts, feedback: Feedback, config: RewardConfig) -> dict[str, float]:
    """Every term by name, before clipping; they add up to R."""
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
    """1 at once, 0 at the budget, -½ at twice the budget and beyond."""
    if duration_ms <= budget_ms:
        return 1.0 - duration_ms / budget_ms
    return -0.5 * min((duration_ms - budget_ms) / budget_ms, 1.0)


def quality_of(facts: RewardFacts, feedback: Feedback) -> float | None:
    """Mean of the scores there are: the record's own, `relevance`, and the share of sources that were `selected`."""
    scores = [] if facts.quality is None else [float(facts.quality)]
    if (relevance := feedback.get("relevance")) is not None:
        scores.append(_between("relevance", relevance, 0.0, 1.0))
    if (selected := feedback.get("selected")) is not None:
        scores.append(_share(selected, facts.sources))
    return sum(scores) / len(scores) if scores else None


def word_of(feedback: Feedback) -> tuple[str, float] | None:
    """Which key decides, and the reward it stands for; None if nobody said anything that decides."""
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
    """r + γ φ(s') - φ(s), with φ = 0 after the end: changes what is learned first, never what is best (Ng et al. 1999)."""
    return reward + gamma * (0.0 if terminated else next_potential) - potential


def potential(confidence: float, threads: int, errors: int) -> float:
    """φ = .6 confidence + .3 min(threads/10, 1) - .1 min(.2 errors, 1)."""
    return 0.6 * confidence + 0.3 * min(threads / 10.0, 1.0) - 0.1 * min(errors * 0.2, 1.0)


def _rated(name: str, value: Any) -> float:
    return 2.0 * _between(name, value, 0.0, 5.0) / 5.0 - 1.0


def _between(name: str, value: Any, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ConfigError(f"feedback {name!r} is {value!r}; it must be a number from {low:g} to {high:g}")
    return min(max(float(value), low), high)


def _share(selected: Any, sources: Sequence[str]) -> float:
    if isinstance(selected, str) or not isinstance(selected, Sequence):
        raise ConfigError(f"feedback 'selected' is {selected!r}; it must be a list of ids")
    chosen = {str(each) for each in selected}
    if not sources:
        return 1.0 if chosen else 0.0
    return len(chosen & set(sources)) / len(sources)
