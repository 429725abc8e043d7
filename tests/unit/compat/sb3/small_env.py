"""A small env for the tests of the layer: it counts its steps, ends after `length`, and pays 1 per step."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np


class CountingEnv(gym.Env):
    metadata: dict[str, Any] = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def __init__(self, length: int = 4, truncates: bool = True, render_mode: str | None = None) -> None:
        self.observation_space = gym.spaces.Box(0.0, 100.0, (2,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self.length, self.truncates, self.render_mode = length, truncates, render_mode
        self.count, self.seeds = 0, []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        self.seeds.append(seed)
        return self._obs(), {}

    def step(self, action):
        self.count += 1
        end = self.count >= self.length
        return self._obs(), 1.0, end and not self.truncates, end and self.truncates, {}

    def render(self):
        return np.full((2, 2, 3), self.count, np.uint8)

    def double(self, x: int) -> int:
        return 2 * x

    def _obs(self):
        return np.array([self.count, 1.0], np.float32)
