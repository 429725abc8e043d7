"""RewardExtractor: rewards and experiences of woven queries."""

from __future__ import annotations

from typing import Any

from surefoot.compat.hololoom.spacetime import Spacetime, experience_in
from surefoot.decide.rewards import Feedback, Reward, reward_of
from surefoot.decide.rewards import RewardConfig as RewardConfig


class RewardExtractor:
    """Computes the reward of a Spacetime; every part of it is in `reward(…).parts`."""

    def __init__(self, config: RewardConfig | None = None) -> None:
        self.config = config or RewardConfig()

    def reward(self, spacetime: Spacetime, user_feedback: Feedback | None = None) -> Reward:
        return reward_of(spacetime.run().facts(), user_feedback, self.config)

    def compute_reward(self, spacetime: Spacetime, user_feedback: Feedback | None = None) -> float:
        """Return the number alone, in [-1, 1]."""
        return self.reward(spacetime, user_feedback).value

    def extract_experience(self, spacetime: Spacetime, user_feedback: Feedback | None = None) -> dict[str, Any]:
        """Return observation, action (the tool's name), reward, done, info."""
        return experience_in(spacetime.run().to_json(), self.reward(spacetime, user_feedback).value)
