"""Envs whose right action is the observation, and an env of random images."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

GymStep = tuple[Any, float, bool, bool, dict[str, Any]]


class IdentityEnv(gym.Env[Any, Any]):
    """Rewards an action that is equal to the observation with 1. Pass `dim` for a Discrete space, or a `space`."""

    def __init__(self, dim: int | None = None, space: spaces.Space[Any] | None = None, ep_length: int = 100) -> None:
        assert dim is None or space is None, "pass dim or space, not both"
        self.action_space = self.observation_space = spaces.Discrete(dim or 1) if space is None else space
        self.ep_length, self.current_step = ep_length, 0
        self.num_resets = -1  # the reset below makes it 0
        self.reset()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.current_step = 0
        self.num_resets += 1
        self._choose_next_state()
        return self.state, {}

    def step(self, action: Any) -> GymStep:
        """Return the next observation and the reward of `action`."""
        reward = self._get_reward(action)
        self._choose_next_state()
        self.current_step += 1
        return self.state, reward, False, self.current_step >= self.ep_length, {}

    def _choose_next_state(self) -> None:
        # A model seeds the action space of its env, so that seeded runs repeat.
        self.state: Any = self.action_space.sample()

    def _get_reward(self, action: Any) -> float:
        return 1.0 if np.all(self.state == action) else 0.0

    def render(self) -> None:
        """Do nothing."""


class IdentityEnvBox(IdentityEnv):
    """The same with one number; an action within `eps` of the observation is right."""

    def __init__(self, low: float = -1.0, high: float = 1.0, eps: float = 0.05, ep_length: int = 100) -> None:
        self.eps = eps
        super().__init__(space=spaces.Box(low, high, (1,), np.float32), ep_length=ep_length)

    def _get_reward(self, action: Any) -> float:
        return 1.0 if np.all(np.abs(self.state - action) <= self.eps) else 0.0


class IdentityEnvMultiDiscrete(IdentityEnv):
    """The same with two choices of `dim` options."""

    def __init__(self, dim: int = 1, ep_length: int = 100) -> None:
        super().__init__(space=spaces.MultiDiscrete([dim, dim]), ep_length=ep_length)


class IdentityEnvMultiBinary(IdentityEnv):
    """The same with `dim` bits."""

    def __init__(self, dim: int = 1, ep_length: int = 100) -> None:
        super().__init__(space=spaces.MultiBinary(dim), ep_length=ep_length)


class FakeImageEnv(gym.Env[Any, Any]):
    """Random images and rewards of 0, in the form of an Atari game."""

    def __init__(
        self,
        action_dim: int = 6,
        screen_height: int = 84,
        screen_width: int = 84,
        n_channels: int = 1,
        discrete: bool = True,
        channel_first: bool = False,
    ) -> None:
        size = (screen_height, screen_width)
        self.observation_shape = (n_channels, *size) if channel_first else (*size, n_channels)
        self.observation_space = spaces.Box(0, 255, self.observation_shape, np.uint8)
        self.action_space = spaces.Discrete(action_dim) if discrete else spaces.Box(-1, 1, (5,), np.float32)
        self.ep_length, self.current_step = 10, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.current_step = 0
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> GymStep:
        """Return another image."""
        self.current_step += 1
        return self.observation_space.sample(), 0.0, False, self.current_step >= self.ep_length, {}

    def render(self) -> None:
        """Do nothing."""
