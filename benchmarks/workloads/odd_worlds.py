"""Gymnasium envs that everyone in `benchmarks/policies.py` plays: hidden velocities, forbidden choices, pictures."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

ITEMS = 12
SIDE, CELL = 84, 7


class NoVelocity(gym.ObservationWrapper[Any, Any, Any]):
    """CartPole's place and angle alone."""

    def __init__(self) -> None:
        super().__init__(gym.make("CartPole-v1"))
        space = self.env.observation_space
        assert isinstance(space, gym.spaces.Box)
        self.observation_space = gym.spaces.Box(space.low[::2], space.high[::2], dtype=np.float32)

    def observation(self, observation: Any) -> Any:
        return np.asarray(observation, np.float32)[::2]


class InOrder(gym.Env[Any, Any]):
    """Twelve numbers to be picked from the smallest up. What is gone is forbidden, and half of what is left as well."""

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Box(-1.0, 1.0, (ITEMS,), np.float32)
        self.action_space = gym.spaces.Discrete(ITEMS)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.numbers = self.np_random.random(ITEMS).astype(np.float32)
        self.left = np.ones(ITEMS, bool)
        self._forbid()
        return self._seen(), {"action_mask": self.mask.copy()}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if not self.mask[action]:
            raise ValueError(f"action {action} is forbidden")
        right = self._smallest() == action
        self.left[action] = False
        over = not self.left.any()
        if not over:
            self._forbid()
        return self._seen(), right / ITEMS, over, False, {"action_mask": self.mask.copy()}

    def action_masks(self) -> np.ndarray:
        """What sb3-contrib asks for."""
        return self.mask.copy()

    def _forbid(self) -> None:
        """At most half of all choices are open; the right one always is."""
        self.mask = self.left & (self.np_random.random(ITEMS) < 0.5)
        self.mask[self._smallest()] = True
        for extra in np.flatnonzero(self.mask)[ITEMS // 2 :]:
            self.mask[extra] = extra == self._smallest()

    def _smallest(self) -> int:
        return int(np.argmin(np.where(self.left, self.numbers, 2.0)))

    def _seen(self) -> np.ndarray:
        return np.where(self.left, self.numbers, -1.0).astype(np.float32)


class Catch(gym.Env[Any, Any]):
    """A ball falls down an 84x84 picture; a bat on the ground must be under it. Four frames deep, in bytes."""

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Box(0, 255, (4, SIDE, SIDE), np.uint8)
        self.action_space = gym.spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        cells = SIDE // CELL
        self.ball = np.array([0, self.np_random.integers(cells)])
        self.drift = int(self.np_random.integers(-1, 2))
        self.bat = int(self.np_random.integers(cells))
        self.frames = np.zeros((4, SIDE, SIDE), np.uint8)
        self._draw()
        return self.frames.copy(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        last = SIDE // CELL - 1
        self.bat = min(max(self.bat + int(action) - 1, 0), last)
        across = self.ball[1] + self.drift
        if not 0 <= across <= last:
            self.drift = -self.drift
            across = self.ball[1] + self.drift
        self.ball = np.array([self.ball[0] + 1, across])
        self._draw()
        over = bool(self.ball[0] == last)
        reward = (1.0 if abs(self.ball[1] - self.bat) <= 1 else -1.0) if over else 0.0
        return self.frames.copy(), reward, over, False, {}

    def _draw(self) -> None:
        self.frames[:-1] = self.frames[1:]
        frame = self.frames[-1]
        frame[:] = 0
        row, column = self.ball * CELL
        frame[row : row + CELL, column : column + CELL] = 255
        left = max(0, (self.bat - 1) * CELL)
        frame[-CELL:, left : (self.bat + 2) * CELL] = 128
