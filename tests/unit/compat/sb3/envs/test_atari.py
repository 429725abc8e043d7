"""The wrappers on a game that counts its frames; real games are in the tests of Stable-Baselines3."""

from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from surefoot.compat.sb3.envs import atari


class Game(gym.Env):
    """Frame k is an image of k; a life is lost every 10 frames, and there are three."""

    def __init__(self):
        self.observation_space = spaces.Box(0, 255, (4, 4, 3), np.uint8)
        self.action_space = spaces.Discrete(3)
        self.frame, self.actions, self.resets = 0, [], 0
        self.ale = SimpleNamespace(lives=lambda: 3 - self.frame // 10)

    def get_action_meanings(self):
        return ["NOOP", "FIRE", "UP"]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.frame, self.resets = 0, self.resets + 1
        return self._image(), {}

    def step(self, action):
        self.frame += 1
        self.actions.append(int(action))
        return self._image(), 5.0, self.frame >= 30, False, {}

    def _image(self):
        return np.full((4, 4, 3), self.frame % 256, np.uint8)


def test_skipped_frames_are_summed_and_the_last_two_are_maximised():
    env = atari.MaxAndSkipEnv(Game(), skip=4)
    env.reset()
    obs, reward, *_ = env.step(1)
    assert (obs.max(), reward) == (4, 20.0)


def test_a_lost_life_ends_the_episode_and_the_game_goes_on():
    env = atari.EpisodicLifeEnv(Game())
    env.reset()
    ends = [env.step(0)[2] for _ in range(10)]
    assert ends == [False] * 9 + [True]
    obs, _ = env.reset()
    assert (obs.max(), env.unwrapped.resets) == (11, 1)


def test_the_first_steps_are_those_of_the_wrappers():
    env = atari.FireResetEnv(Game())
    env.reset()
    assert env.unwrapped.actions == [1, 2]
    env = atari.NoopResetEnv(Game(), noop_max=5)
    env.reset(seed=0)
    assert 1 <= len(env.unwrapped.actions) <= 5
    assert set(env.unwrapped.actions) == {0}


def test_sticky_actions_repeat_with_their_probability():
    env = atari.StickyActionEnv(Game(), 0.25)
    env.reset(seed=0)
    repeated = 0
    for i in range(2000):
        env.step(i % 3)
        repeated += env.unwrapped.actions[-1] != i % 3
    # Three repetitions in a row give the wanted action again: 2000 · (0.25 - 0.25³) = 469, with a deviation of about 19.
    assert abs(repeated - 469) < 80


def test_all_wrappers_together():
    pytest.importorskip("cv2", reason="OpenCV is not installed")
    env = atari.AtariWrapper(Game(), noop_max=0, screen_size=6)
    obs, _ = env.reset(seed=0)
    assert obs.shape == env.observation_space.shape == (6, 6, 1)
    assert env.step(2)[1] == 1.0
