"""sb3-contrib's `TimeFeatureWrapper`."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces


class TimeFeatureWrapper(gym.Wrapper[Any, Any, Any, Any]):
    """Appends the share of the episode's time that is left to observations: a flat Box, or "observation" of a Dict.

    `max_steps` counts if the env has no time limit. With `test_mode` the number is always 1, which shows whether a policy
    depends on it.
    """

    def __init__(self, env: gym.Env[Any, Any], max_steps: int = 1000, test_mode: bool = False) -> None:
        space: Any = env.observation_space
        box = space.spaces.get("observation") if isinstance(space, spaces.Dict) else space
        assert isinstance(box, spaces.Box), (
            f"TimeFeatureWrapper needs a Box or a Dict with an 'observation', not {space}"
        )
        assert len(box.shape) == 1, f"TimeFeatureWrapper needs flat observations, not of shape {box.shape}"
        self.dtype: Any = box.dtype
        low, high = (np.append(x, limit).astype(self.dtype) for x, limit in ((box.low, 0.0), (box.high, 1.0)))
        longer = spaces.Box(low, high, dtype=self.dtype)
        super().__init__(env)
        self.observation_space = (
            spaces.Dict({**space.spaces, "observation": longer}) if isinstance(space, spaces.Dict) else longer
        )
        limit = None if env.spec is None else env.spec.max_episode_steps
        self._max_steps, self._test_mode, self._current_step = limit or max_steps, test_mode, 0

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        self._current_step = 0
        obs, info = self.env.reset(**kwargs)
        return self._get_obs(obs), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self._current_step += 1
        obs, reward, terminated, truncated, info = self.env.step(action)
        return self._get_obs(obs), reward, terminated, truncated, info

    def _get_obs(self, obs: Any) -> Any:
        left = np.array(1.0 if self._test_mode else 1 - self._current_step / self._max_steps, dtype=self.dtype)
        if isinstance(obs, dict):
            return {**obs, "observation": np.append(obs["observation"], left)}
        return np.append(obs, left)
