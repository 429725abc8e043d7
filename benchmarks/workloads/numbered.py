"""CartPole whose observations say which env of all that were ever built this is, and how many steps it has taken."""

from __future__ import annotations

import os
from typing import Any

import gymnasium as gym
import numpy as np

UNIT = 2.0**-60
"""Numbers are shown in this unit: exact in float32, and nothing that a policy could see beside a cart's position."""


class Numbered(gym.Wrapper[Any, Any, Any, Any]):
    """Six observations: CartPole's four, the number of the env, the number of steps it took so far."""

    def __init__(self) -> None:
        super().__init__(gym.make("CartPole-v1"))
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (6,), np.float32)
        self.number, self.taken = int.from_bytes(os.urandom(3), "big"), 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        obs, info = self.env.reset(seed=seed, options=options)
        return self._numbered(obs), info

    def step(self, action: Any) -> Any:
        self.taken += 1
        obs, *rest = self.env.step(action)
        return self._numbered(obs), *rest

    def _numbered(self, obs: Any) -> Any:
        return np.append(obs, np.array([self.number, self.taken]) * UNIT).astype(np.float32)
