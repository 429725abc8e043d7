"""Rewards and experiences out of woven queries, by the names the first system had for them."""

from __future__ import annotations

from typing import Any

from surefoot.decide.rewards import Feedback, Reward, RewardConfig, reward_of
from surefoot.decide.tools.spacetime import Spacetime


class RewardExtractor:
    """Works out the reward of a Spacetime; every part of it is in `reward(…).parts`."""

    def __init__(self, config: RewardConfig | None = None) -> None:
        self.config = config or RewardConfig()

    def reward(self, spacetime: Spacetime, user_feedback: Feedback | None = None) -> Reward:
        return reward_of(spacetime.facts(), user_feedback, self.config)

    def compute_reward(self, spacetime: Spacetime, user_feedback: Feedback | None = None) -> float:
        """The number alone, in [-1, 1]."""
        return self.reward(spacetime, user_feedback).value

    def extract_experience(self, spacetime: Spacetime, user_feedback: Feedback | None = None) -> dict[str, Any]:
        """observation, action (the tool's name), reward, done, info."""
        return experience_of(spacetime, self.reward(spacetime, user_feedback).value)


def experience_of(spacetime: Spacetime, reward: float) -> dict[str, Any]:
    """One decision as a plain dict; an episode of one step, so it is always done."""
    trace = spacetime.trace
    return {
        "observation": spacetime.observation(),
        "action": spacetime.tool_used,
        "reward": reward,
        "done": True,
        "info": {
            "confidence": spacetime.confidence,
            "quality_score": spacetime.quality_score,
            "duration_ms": trace.duration_ms,
            "policy_adapter": trace.policy_adapter,
            "num_errors": len(trace.errors),
            "num_warnings": len(trace.warnings),
            "bandit_statistics": trace.bandit_statistics,
        },
    }
