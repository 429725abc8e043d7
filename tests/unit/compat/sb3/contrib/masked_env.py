"""An env of three actions in which action 0 is always forbidden."""

from __future__ import annotations

import gymnasium as gym
from tests.unit.compat.sb3.small_env import CountingEnv


class MaskedEnv(CountingEnv):
    def __init__(self, length: int = 4) -> None:
        super().__init__(length)
        self.action_space = gym.spaces.Discrete(3)
        self.taken: list[int] = []

    def step(self, action):
        self.taken.append(int(action))
        return super().step(action)

    def action_masks(self):
        return [False, True, True]
