"""More faults of environments, written before any rule of the doctor was tried on them; and the true return below a fault."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np


class TrueReturn(gym.Wrapper):
    """Appends the return of every episode to a list. Below a fault of the reward, it measures what the policy really gets."""

    def __init__(self, env: gym.Env, returns: list[float]) -> None:
        super().__init__(env)
        self._returns, self._sum, self._steps = returns, 0.0, 0

    def reset(self, **how: Any) -> Any:
        if self._steps:
            self._returns.append(self._sum)
        self._sum, self._steps = 0.0, 0
        return self.env.reset(**how)

    def step(self, action: Any) -> Any:
        result = self.env.step(action)
        self._sum, self._steps = self._sum + float(result[1]), self._steps + 1
        return result


class LastEpisode(gym.Wrapper):
    """Observations, or rewards, are those of the same step of the previous episode (of its last one, if that was shorter)."""

    def __init__(self, env: gym.Env, part: str) -> None:
        super().__init__(env)
        self._part, self._previous, self._current = part, list[Any](), list[Any]()

    def _exchanged(self, value: Any) -> Any:
        self._current.append(value)
        if not self._previous:
            return value
        return self._previous[min(len(self._current), len(self._previous)) - 1]

    def reset(self, **how: Any) -> Any:
        self._previous, self._current = self._current, []
        obs, info = self.env.reset(**how)
        return self._exchanged(obs) if self._part == "obs" else obs, info

    def step(self, action: Any) -> Any:
        obs, reward, *rest = self.env.step(action)
        if self._part == "obs":
            return self._exchanged(obs), reward, *rest
        return obs, self._exchanged(float(reward)), *rest


class NeighbourObservation(gym.Wrapper):
    """Each stream gets the observation that the stream before it had last: `board` is shared by all of them."""

    def __init__(self, env: gym.Env, board: list[Any]) -> None:
        super().__init__(env)
        self._board, self._place = board, len(board)
        board.append(None)

    def _exchanged(self, obs: Any) -> Any:
        self._board[self._place] = obs
        other = self._board[self._place - 1]
        return obs if other is None else other

    def reset(self, **how: Any) -> Any:
        obs, info = self.env.reset(**how)
        return self._exchanged(obs), info

    def step(self, action: Any) -> Any:
        obs, *rest = self.env.step(action)
        return self._exchanged(obs), *rest


class StickyAction(gym.Wrapper):
    """The previous action is repeated with a probability."""

    def __init__(self, env: gym.Env, chance: float) -> None:
        super().__init__(env)
        self._chance, self._rng, self._last = chance, np.random.default_rng(11), None

    def reset(self, **how: Any) -> Any:
        self._last = None
        return self.env.reset(**how)

    def step(self, action: Any) -> Any:
        if self._last is None or self._rng.random() >= self._chance:
            self._last = action
        return self.env.step(self._last)


class FlippedByEpisode(gym.Wrapper):
    """In every other episode, by chance, actions are mirrored: the sign of numbers, the order of choices."""

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        self._rng, self._flip = np.random.default_rng(12), False

    def reset(self, **how: Any) -> Any:
        self._flip = bool(self._rng.integers(2))
        return self.env.reset(**how)

    def step(self, action: Any) -> Any:
        if self._flip:
            space = self.action_space
            action = space.n - 1 - action if isinstance(space, gym.spaces.Discrete) else -action
        return self.env.step(action)


class TruncatedAfter(gym.Wrapper):
    """Episodes are cut off after a few steps."""

    def __init__(self, env: gym.Env, steps: int) -> None:
        super().__init__(env)
        self._limit, self._count = steps, 0

    def reset(self, **how: Any) -> Any:
        self._count = 0
        return self.env.reset(**how)

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._count += 1
        return obs, reward, terminated, bool(truncated or self._count >= self._limit), info


class EndIsTruncation(gym.Wrapper):
    """A termination is reported as truncated, so that its value is bootstrapped."""

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = self.env.step(action)
        return obs, reward, False, bool(terminated or truncated), info


class NoReset(gym.Wrapper):
    """Only the first reset does something; later episodes go on where the last one ended."""

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        self._obs: Any = None

    def reset(self, **how: Any) -> Any:
        if self._obs is None:
            self._obs, _ = self.env.reset(**how)
        return self._obs, {}

    def step(self, action: Any) -> Any:
        self._obs, *rest = self.env.unwrapped.step(action)
        return self._obs, *rest


class NoEnd(gym.Wrapper):
    """An episode never ends."""

    def step(self, action: Any) -> Any:
        obs, reward, _, _, info = self.env.unwrapped.step(action)
        return obs, reward, False, False, info


def permuted_by_stream(env: gym.Env, counter: list[int]) -> gym.Env:
    """Every stream has its own order of the parts of the observation."""
    counter[0] += 1
    width = len(env.observation_space.sample())
    order = np.random.default_rng(100 + counter[0]).permutation(width)
    return gym.wrappers.TransformObservation(
        env, lambda obs: obs[order], gym.spaces.Box(-np.inf, np.inf, (width,), np.float32)
    )


def integer(obs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.trunc(obs)


def dropouts(obs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.random(obs.shape) < 0.5, 0.0, obs)


def tiny(obs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return 1e-4 * obs


def weak_action(action: Any, space: gym.Space[Any], rng: np.random.Generator) -> Any:
    return 0.01 * action
