"""SB3's Atari wrappers."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

Env = gym.Env[Any, Any]
Reset = tuple[Any, dict[str, Any]]
AtariStep = tuple[Any, Any, bool, bool, dict[str, Any]]


def _meanings(env: Any) -> list[str]:
    return env.unwrapped.get_action_meanings()


class StickyActionEnv(gym.Wrapper[Any, Any, Any, Any]):
    """Repeats the previous action with a probability (Machado et al., 2018)."""

    def __init__(self, env: Env, action_repeat_probability: float) -> None:
        super().__init__(env)
        assert _meanings(env)[0] == "NOOP"
        self.action_repeat_probability = action_repeat_probability
        self._sticky_action: Any = 0

    def reset(self, **kwargs: Any) -> Reset:  # type: ignore[override]  # any argument of the env
        """Start an episode; the action before its first one is none."""
        self._sticky_action = 0
        return self.env.reset(**kwargs)

    def step(self, action: Any) -> AtariStep:
        """Take `action` or the previous one."""
        if self.np_random.random() >= self.action_repeat_probability:
            self._sticky_action = action
        return self.env.step(self._sticky_action)


class NoopResetEnv(gym.Wrapper[Any, Any, Any, Any]):
    """Begins episodes with 1 to `noop_max` steps without an action."""

    def __init__(self, env: Env, noop_max: int = 30) -> None:
        super().__init__(env)
        assert _meanings(env)[0] == "NOOP"
        self.noop_max, self.override_num_noops, self.noop_action = noop_max, None, 0

    def reset(self, **kwargs: Any) -> Reset:  # type: ignore[override]  # any argument of the env
        obs, info = self.env.reset(**kwargs)
        count = self.override_num_noops or int(self.unwrapped.np_random.integers(1, self.noop_max + 1))
        for _ in range(count):
            obs, _, terminated, truncated, info = self.env.step(self.noop_action)
            if terminated or truncated:
                obs, info = self.env.reset(**kwargs)
        return obs, info


class FireResetEnv(gym.Wrapper[Any, Any, Any, Any]):
    """Begins episodes with FIRE and the action after it, for games that wait for them."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        assert _meanings(env)[1] == "FIRE"
        assert len(_meanings(env)) >= 3

    def reset(self, **kwargs: Any) -> Reset:  # type: ignore[override]  # any argument of the env
        obs, _ = self.env.reset(**kwargs)
        for action in (1, 2):
            obs, _, terminated, truncated, _ = self.env.step(action)
            if terminated or truncated:
                obs, _ = self.env.reset(**kwargs)
        return obs, {}


class EpisodicLifeEnv(gym.Wrapper[Any, Any, Any, Any]):
    """Ends an episode with each lost life. `reset` starts the next life unless the game is over."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.lives, self.was_real_done = 0, True

    def _count(self) -> int:
        game: Any = self.env.unwrapped
        return game.ale.lives()

    def step(self, action: Any) -> AtariStep:
        obs, reward, terminated, truncated, info = self.env.step(action)
        self.was_real_done = terminated or truncated
        lives = self._count()
        # Some games show 0 lives for a few frames before they end; that end is the env's own.
        if 0 < lives < self.lives:
            terminated = True
        self.lives = lives
        return obs, reward, terminated, truncated, info

    def reset(self, **kwargs: Any) -> Reset:  # type: ignore[override]  # any argument of the env
        """Start the next life, or the next game."""
        over = self.was_real_done
        obs, info = None, {}
        if not over:
            obs, _, terminated, truncated, info = self.env.step(0)
            over = terminated or truncated
        if over:
            obs, info = self.env.reset(**kwargs)
        self.lives = self._count()
        return obs, info


class MaxAndSkipEnv(gym.Wrapper[Any, Any, Any, Any]):
    """Repeats each action `skip` times and returns the maximum of the last two frames."""

    def __init__(self, env: Env, skip: int = 4) -> None:
        super().__init__(env)
        self._obs_buffer = np.zeros((2, *env.observation_space.shape), env.observation_space.dtype)  # type: ignore[misc]  # Box
        self._skip = skip

    def step(self, action: Any) -> AtariStep:
        """Repeat the action; the reward is the sum."""
        total, terminated, truncated, info = 0.0, False, False, dict[str, Any]()
        for i in range(self._skip):
            obs, reward, terminated, truncated, info = self.env.step(action)
            if i >= self._skip - 2:
                self._obs_buffer[i - self._skip + 2] = obs
            total += float(reward)
            if terminated or truncated:
                break
        return self._obs_buffer.max(axis=0), total, terminated, truncated, info


class ClipRewardEnv(gym.RewardWrapper[Any, Any]):
    """The sign of the reward."""

    def reward(self, reward: Any) -> float:
        """Return -1, 0 or 1."""
        return float(np.sign(float(reward)))


class WarpFrame(gym.ObservationWrapper[Any, Any, Any]):
    """Grey images of `height` × `width`. Needs OpenCV."""

    def __init__(self, env: Env, width: int = 84, height: int = 84) -> None:
        super().__init__(env)
        assert isinstance(env.observation_space, spaces.Box), f"WarpFrame needs images, not {env.observation_space}"
        try:
            self._cv2: Any = import_module("cv2")
        except ImportError as why:
            raise ImportError("the Atari wrappers need OpenCV: pip install opencv-python") from why
        self.width, self.height = width, height
        self.observation_space = spaces.Box(0, 255, (height, width, 1), np.uint8)

    def observation(self, observation: Any) -> np.ndarray:
        """Return a frame in grey and in the new size."""
        grey = self._cv2.cvtColor(observation, self._cv2.COLOR_RGB2GRAY)
        # Area interpolation: every pixel of the original counts, as in the DQN paper's code.
        return self._cv2.resize(grey, (self.width, self.height), interpolation=self._cv2.INTER_AREA)[:, :, None]


class AtariWrapper(gym.Wrapper[Any, Any, Any, Any]):
    """All of these wrappers, for envs without frame skip (`…NoFrameskip-v4`)."""

    def __init__(
        self,
        env: Env,
        noop_max: int = 30,
        frame_skip: int = 4,
        screen_size: int = 84,
        terminal_on_life_loss: bool = True,
        clip_reward: bool = True,
        action_repeat_probability: float = 0.0,
    ) -> None:
        wrapped: Any = env
        if action_repeat_probability > 0:
            wrapped = StickyActionEnv(wrapped, action_repeat_probability)
        if noop_max > 0:
            wrapped = NoopResetEnv(wrapped, noop_max)
        if frame_skip > 1:
            wrapped = MaxAndSkipEnv(wrapped, frame_skip)
        if terminal_on_life_loss:
            wrapped = EpisodicLifeEnv(wrapped)
        if "FIRE" in _meanings(env):
            wrapped = FireResetEnv(wrapped)
        wrapped = WarpFrame(wrapped, screen_size, screen_size)
        super().__init__(ClipRewardEnv(wrapped) if clip_reward else wrapped)
