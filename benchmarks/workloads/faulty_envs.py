"""Faults of environments, as Gymnasium wrappers: what a person might do wrong in an environment or a wrapper of their own."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

Wrap = Callable[[gym.Env], gym.Env]
Change = Callable[[np.ndarray, np.random.Generator], np.ndarray]


class ChangedObservation(gym.Wrapper):
    """Every observation goes through a function."""

    def __init__(self, env: gym.Env, change: Change) -> None:
        super().__init__(env)
        box = env.observation_space
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, change(box.sample(), np.random.default_rng(0)).shape)
        self._change, self._rng = change, np.random.default_rng(7)

    def reset(self, **how: Any) -> Any:
        obs, info = self.env.reset(**how)
        return self._change(obs, self._rng).astype(np.float32), info

    def step(self, action: Any) -> Any:
        obs, *rest = self.env.step(action)
        return self._change(obs, self._rng).astype(np.float32), *rest


class LateObservation(gym.Wrapper):
    """Observations arrive `lag` steps late."""

    def __init__(self, env: gym.Env, lag: int) -> None:
        super().__init__(env)
        self._seen: deque[np.ndarray] = deque(maxlen=lag + 1)

    def reset(self, **how: Any) -> Any:
        obs, info = self.env.reset(**how)
        self._seen.clear()
        self._seen.append(obs)
        return obs, info

    def step(self, action: Any) -> Any:
        obs, *rest = self.env.step(action)
        self._seen.append(obs)
        return self._seen[0], *rest


class FrozenObservation(gym.Wrapper):
    """The observation is renewed only every few steps."""

    def __init__(self, env: gym.Env, every: int) -> None:
        super().__init__(env)
        self._every, self._count, self._shown = every, 0, np.zeros(0)

    def reset(self, **how: Any) -> Any:
        self._shown, info = self.env.reset(**how)
        self._count = 0
        return self._shown, info

    def step(self, action: Any) -> Any:
        obs, *rest = self.env.step(action)
        self._count += 1
        if self._count % self._every == 0:
            self._shown = obs
        return self._shown, *rest


class WithClock(gym.Wrapper):
    """A counter of all steps is a part of the observation."""

    def __init__(self, env: gym.Env, tick: float) -> None:
        super().__init__(env)
        box = env.observation_space
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (box.shape[0] + 1,))
        self._tick, self._now = tick, 1e3

    def _seen(self, obs: np.ndarray) -> np.ndarray:
        self._now += self._tick
        return np.append(obs, self._now).astype(np.float32)

    def reset(self, **how: Any) -> Any:
        obs, info = self.env.reset(**how)
        return self._seen(obs), info

    def step(self, action: Any) -> Any:
        obs, *rest = self.env.step(action)
        return self._seen(obs), *rest


class ChangedAction(gym.Wrapper):
    """The environment gets another action than the one that was chosen."""

    def __init__(self, env: gym.Env, change: Callable[[Any, gym.Space, np.random.Generator], Any]) -> None:
        super().__init__(env)
        self._change, self._rng = change, np.random.default_rng(8)

    def step(self, action: Any) -> Any:
        return self.env.step(self._change(action, self.action_space, self._rng))


class LateAction(gym.Wrapper):
    """Actions are carried out `lag` steps late."""

    def __init__(self, env: gym.Env, lag: int) -> None:
        super().__init__(env)
        self._waiting: deque[Any] = deque()
        self._lag = lag

    def reset(self, **how: Any) -> Any:
        self._waiting = deque([self.action_space.sample()] * self._lag)
        return self.env.reset(**how)

    def step(self, action: Any) -> Any:
        self._waiting.append(action)
        return self.env.step(self._waiting.popleft())


class ChangedReward(gym.Wrapper):
    """Every reward goes through a function."""

    def __init__(self, env: gym.Env, change: Callable[[float, np.random.Generator], float]) -> None:
        super().__init__(env)
        self._change, self._rng = change, np.random.default_rng(9)

    def step(self, action: Any) -> Any:
        obs, reward, *rest = self.env.step(action)
        return obs, float(self._change(float(reward), self._rng)), *rest


class LateReward(gym.Wrapper):
    """Rewards arrive `lag` steps late; what is left is paid at the end. A lag of 0: all of it at the end."""

    def __init__(self, env: gym.Env, lag: int) -> None:
        super().__init__(env)
        self._lag, self._owed = lag, deque[float]()

    def reset(self, **how: Any) -> Any:
        self._owed.clear()
        return self.env.reset(**how)

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._owed.append(float(reward))
        paid = 0.0
        if terminated or truncated:
            paid = sum(self._owed)
        elif self._lag and len(self._owed) > self._lag:
            paid = self._owed.popleft()
        return obs, paid, terminated, truncated, info


class RandomEnd(gym.Wrapper):
    """Episodes also end by chance, as terminated."""

    def __init__(self, env: gym.Env, chance: float) -> None:
        super().__init__(env)
        self._chance, self._rng = chance, np.random.default_rng(10)

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = self.env.step(action)
        return obs, reward, bool(terminated or self._rng.random() < self._chance), truncated, info


class LimitIsEnd(gym.Wrapper):
    """A time limit is reported as terminated."""

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = self.env.step(action)
        return obs, reward, bool(terminated or truncated), False, info


def zero(obs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.zeros_like(obs)


def half(obs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.where(np.arange(len(obs)) >= len(obs) // 2, obs, 0.0)


def cut_off(obs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.clip(1e3 * obs, -1.0, 1.0)


def shuffled(obs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.permutation(obs)


def random_action(action: Any, space: gym.Space, rng: np.random.Generator) -> Any:
    if isinstance(space, gym.spaces.Discrete):
        return int(rng.integers(space.n))
    return rng.uniform(space.low, space.high).astype(np.float32)


def constant_action(action: Any, space: gym.Space, rng: np.random.Generator) -> Any:
    return 0 if isinstance(space, gym.spaces.Discrete) else np.zeros_like(action)


def noise(obs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return obs + 10.0 * rng.normal(size=obs.shape)


def offset(obs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return obs + 1e4


def sign_only(obs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.sign(obs)


def mostly_random(action: Any, space: gym.Space, rng: np.random.Generator) -> Any:
    return action if rng.random() < 0.1 else random_action(action, space, rng)


def coin(reward: float, rng: np.random.Generator) -> float:
    return float(rng.integers(2))
