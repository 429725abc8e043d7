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
    return experience_in_json(spacetime.to_dict(), reward)


def experience_in_json(woven: dict[str, Any], reward: float) -> dict[str, Any]:
    """The same from a saved Spacetime, without building it: a batch of 64 takes a millisecond or two."""
    trace = woven["trace"]
    return {
        "observation": {
            "motifs_detected": trace["motifs_detected"],
            "embedding_scales_used": trace["embedding_scales_used"],
            "context_shards_count": trace["context_shards_count"],
            "retrieval_mode": trace["retrieval_mode"],
            "threads_activated_count": len(trace["threads_activated"]),
        },
        "action": woven["tool_used"],
        "reward": reward,
        "done": True,
        "info": {
            "confidence": woven["confidence"],
            "quality_score": woven["quality_score"],
            "duration_ms": trace["duration_ms"],
            "policy_adapter": trace["policy_adapter"],
            "num_errors": len(trace["errors"]),
            "num_warnings": len(trace["warnings"]),
            "bandit_statistics": trace["bandit_statistics"],
        },
    }
