"""Playing the same seed several times shows what is random, and what one changed action does."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest

from surefoot.envs.gym.single_envs import EnvsWorld
from surefoot.envs.make import make_world
from surefoot.train.diagnose.replay_tests import replay_stats


def stats_of(wrap: Callable[[gymnasium.Env], gymnasium.Env], env: str = "Pendulum-v1") -> dict[str, float]:
    return replay_stats(EnvsWorld([lambda: wrap(gymnasium.make(env))] * 8, env))


class Changed(gymnasium.Wrapper):
    """Passes actions, observations and rewards through functions; random numbers do not follow from the seed."""

    def __init__(self, env: gymnasium.Env, **changes: Callable[[Any], Any]) -> None:
        super().__init__(env)
        self.changes = changes

    def reset(self, **how: Any) -> Any:
        obs, info = self.env.reset(**how)
        return self.changes.get("obs", lambda x: x)(obs), info

    def step(self, action: Any) -> Any:
        obs, reward, *rest = self.env.step(self.changes.get("action", lambda x: x)(action))
        change = self.changes.get("reward", lambda x: x)
        return self.changes.get("obs", lambda x: x)(obs), float(change(reward)), *rest


class LateActions(gymnasium.Wrapper):
    """Carries out actions three steps late."""

    def reset(self, **how: Any) -> Any:
        self.waiting = deque([np.zeros(1, np.float32)] * 3)
        return self.env.reset(**how)

    def step(self, action: Any) -> Any:
        self.waiting.append(action)
        return self.env.step(self.waiting.popleft())


class NoReset(gymnasium.Wrapper):
    """Does nothing on a reset but the first one."""

    last: Any = None

    def reset(self, **how: Any) -> Any:
        if self.last is None:
            self.last, _ = self.env.reset(**how)
        return self.last, {}

    def step(self, action: Any) -> Any:
        self.last, *rest = self.env.unwrapped.step(action)
        return self.last, *rest


@pytest.mark.parametrize("env", ["Pendulum-v1", "CartPole-v1", "surefoot/Corridor-v0", "surefoot/Masked-v0"])
def test_a_sound_environment_is_the_same_again_and_follows_its_actions(env: str):
    stats = replay_stats(make_world(env, 8))
    assert stats["replay_same_share"] == 1.0
    assert stats.get("branch_effect", 1.0) == 1.0
    assert stats.get("branch_lag", 0.0) == 0.0
    assert stats.get("branch_leak", 0.0) == 0.0
    assert stats.get("branch_size", 1.0) > 0.1
    assert stats.get("reset_ignored_share", 0.0) == 0.0
    # The same numbers, but for the rounding of sums.
    assert stats.get("replay_view_correlation", 1.0) == pytest.approx(1.0)


def test_ignored_actions_have_no_effect():
    assert stats_of(lambda env: Changed(env, action=np.zeros_like))["branch_effect"] == 0.0


def test_weakened_actions_have_a_small_one():
    assert stats_of(lambda env: Changed(env, action=lambda action: 0.01 * action))["branch_size"] < 0.03


def test_late_actions_have_a_late_one():
    assert stats_of(LateActions)["branch_lag"] == 3.0


def test_actions_that_are_replaced_by_chance_do_no_more_than_chance():
    rng = np.random.default_rng(0)
    stats = stats_of(lambda env: Changed(env, action=lambda action: rng.uniform(-2.0, 2.0, 1).astype(np.float32)))
    assert stats["replay_same_share"] == 0.0
    assert stats["branch_gain"] < 0.2


def test_noise_of_the_observation_is_not_one_of_the_situation():
    rng = np.random.default_rng(0)
    stats = stats_of(lambda env: Changed(env, obs=lambda obs: (obs + 10.0 * rng.normal(size=3)).astype(np.float32)))
    assert stats["replay_view_correlation"] < 0.5


def test_a_clock_in_the_observation_is_not_noise():
    count = iter(range(10**9))
    stats = stats_of(
        lambda env: Changed(env, obs=lambda obs: np.append(obs[:2], 1000.0 + next(count)).astype(np.float32))
    )
    assert stats["replay_same_share"] == 0.0
    assert stats["replay_view_correlation"] > 0.9


def test_rewards_that_are_drawn_are_random():
    rng = np.random.default_rng(0)
    assert stats_of(lambda env: Changed(env, reward=lambda reward: rng.normal()))["replay_reward_random"] == 1.0


def test_a_reset_that_does_nothing_is_seen():
    assert stats_of(NoReset)["reset_ignored_share"] == 1.0
