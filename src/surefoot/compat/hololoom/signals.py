"""Suggestions from the last episodes, for `WeavingShuttle.apply_learning_signals`."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningSignal:
    """A suggestion, its evidence and its priority (0 … 1)."""

    signal_type: str
    """bandit_update, pattern_preference or threshold_adjustment."""
    tool: str | None = None
    pattern: str | None = None
    reward: float | None = None
    confidence_threshold: float | None = None
    recommendation: str = ""
    evidence: dict[str, Any] = field(default_factory=dict[str, Any])
    priority: float = 0.5


# HoloLoom's minimum number of episodes for a suggestion.
FEWEST = 10


def signals_of(episodes: Sequence[dict[str, Any]]) -> list[LearningSignal]:
    """Return the suggestions from episodes of `get_recent_episodes`, the most important first."""
    if len(episodes) < FEWEST:
        return []
    signals = [*_tools(episodes), *_patterns(episodes), *_failing(episodes), *_monotony(episodes)]
    return sorted(signals, key=lambda signal: -signal.priority)


def _tools(episodes: Sequence[dict[str, Any]]) -> list[LearningSignal]:
    rewards: dict[str, list[float]] = defaultdict(list)
    for each in episodes:
        rewards[each["spacetime"].tool_used].append(each["reward"])
    return [
        LearningSignal(
            signal_type="bandit_update",
            tool=tool,
            reward=float(np.mean(some)),
            recommendation=f"{tool}: mean reward {np.mean(some):.2f} over {len(some)} episodes",
            evidence={
                "sample_count": len(some),
                "avg_reward": float(np.mean(some)),
                "std_reward": float(np.std(some)),
                "min_reward": min(some),
                "max_reward": max(some),
            },
            priority=0.8,
        )
        for tool, some in sorted(rewards.items())
        if len(some) >= 3
    ]


def _patterns(episodes: Sequence[dict[str, Any]]) -> list[LearningSignal]:
    rows: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for each in episodes:
        card = each["spacetime"].metadata.get("pattern_card", "")
        rows[card].append((each["reward"], each["spacetime"].trace.duration_ms / 1000.0))
    scores = {
        card: float(np.mean([r for r, _ in some])) / (1.0 + 0.1 * float(np.mean([s for _, s in some])))
        for card, some in rows.items()
        if card and len(some) >= 5
    }
    if not scores:
        return []
    best = max(scores, key=lambda card: scores[card])
    return [
        LearningSignal(
            signal_type="pattern_preference",
            pattern=best,
            recommendation=f"prefer the card {best}",
            evidence={"pattern_scores": scores},
            priority=0.6,
        )
    ]


def _failing(episodes: Sequence[dict[str, Any]]) -> list[LearningSignal]:
    uses, failures = Counter[str](), Counter[str]()
    for each in episodes:
        tool = each["spacetime"].tool_used
        uses[tool] += 1
        failures[tool] += not each["success"]
    if sum(failures.values()) < 5:
        return []
    return [
        LearningSignal(
            signal_type="threshold_adjustment",
            tool=tool,
            confidence_threshold=0.5,
            recommendation=f"{tool} fails in {failures[tool] / count:.0%} of {count} uses: use it only if likely to succeed",
            evidence={"uses": count, "failure_rate": failures[tool] / count},
            priority=0.7,
        )
        for tool, count in sorted(uses.items())
        if count >= 5 and failures[tool] / count > 0.5
    ]


def _monotony(episodes: Sequence[dict[str, Any]]) -> list[LearningSignal]:
    if len(episodes) < 20:
        return []
    uses = Counter(each["spacetime"].tool_used for each in episodes)
    shares = np.array(list(uses.values())) / len(episodes)
    entropy = float(-(shares * np.log(shares)).sum()) / math.log(max(2, len(uses)))
    if entropy >= 0.5:
        return []
    return [
        LearningSignal(
            signal_type="threshold_adjustment",
            recommendation="Increase exploration: nearly all queries go to one tool",
            evidence={"normalized_entropy": entropy, "tool_usage": dict(uses)},
            priority=0.5,
        )
    ]
