"""An env in which one number goes bad at a given step."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np


class Sour(gym.Env[Any, Any]):
    """Ten steps an episode, two numbers to see, two actions to choose from."""

    observation_space = gym.spaces.Box(-10.0, 10.0, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, what: str, value: float, at: int) -> None:
        self.what, self.value, self.at, self.steps = what, value, at, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        obs, reward = np.full(2, self.steps / 10, np.float32), 1.0
        if self.steps == self.at:
            if self.what == "obs":
                obs[1] = self.value
            else:
                reward = self.value
        return obs, reward, self.steps >= 10, False, {}
