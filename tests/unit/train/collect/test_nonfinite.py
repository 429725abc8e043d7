"""NaN and infinity in the steps of a world: what is refused, what is left out, and what stays in quarantine."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.envs.api import Step, View
from surefoot.errors import NonFiniteValue
from surefoot.train.collect.episodes import EpisodeLog
from surefoot.train.collect.nonfinite import NonFiniteGuard, finite


class Stuck:
    """A world of two streams that cannot restart one of them."""

    name, num_envs = "Stuck", 2

    def reset_streams(self, streams: np.ndarray) -> View | None:
        return None


def step(obs: list[float], reward: list[float], ended: tuple[bool, bool] = (False, False)) -> Step:
    rows = np.array(obs, np.float32)[:, None]
    return Step(
        view=View(obs={"obs": rows}),
        reward=np.array(reward),
        terminated=np.array(ended),
        truncated=np.zeros(2, bool),
        valid=np.ones(2, bool),
        final_obs={"obs": np.ones((2, 1), np.float32)},
    )


def test_a_good_step_is_returned_as_it_is() -> None:
    guard, good = NonFiniteGuard(Stuck(), "drop_episode"), step([1.0, 2.0], [0.5, 0.5])
    assert guard.examine(good, EpisodeLog(2)) == (good, [])


def test_a_reward_that_float32_cannot_hold_is_not_finite() -> None:
    assert finite(step([0.0, 0.0], [3e38, 0.0]))
    assert not finite(step([0.0, 0.0], [4e38, 0.0]))


def test_raise_names_the_stream_the_step_and_the_numbers() -> None:
    guard, episodes = NonFiniteGuard(Stuck(), "raise"), EpisodeLog(2)
    episodes.lengths[1] = 6
    with pytest.raises(NonFiniteValue, match=r"stream 1 at step 7 .*'obs': \[nan\]"):
        guard.examine(step([0.0, np.nan], [0.0, 0.0]), episodes)


def test_a_stream_that_cannot_restart_waits_until_its_episode_ends() -> None:
    guard, episodes = NonFiniteGuard(Stuck(), "drop_episode"), EpisodeLog(2)
    cleaned, dropped = guard.examine(step([0.0, np.inf], [1.0, 1.0]), episodes)
    assert (dropped, guard.dropped, guard.watchful) == ([1], 1, True)
    assert cleaned.valid.tolist() == [True, False]
    assert cleaned.view.obs["obs"].ravel().tolist() == [0.0, 0.0]
    _, dropped = guard.examine(step([0.0, 0.0], [1.0, 1.0]), episodes)
    assert dropped == [1]  # the numbers are good again, but the episode is still the bad one
    guard.examine(step([0.0, 0.0], [1.0, 1.0], ended=(False, True)), episodes)
    assert not guard.watchful


def test_a_bad_first_observation_spoils_only_the_next_episode() -> None:
    guard = NonFiniteGuard(Stuck(), "drop_episode")
    cleaned, dropped = guard.examine(step([np.nan, 0.0], [1.0, 1.0], ended=(True, False)), EpisodeLog(2))
    assert dropped == []
    assert cleaned.valid.all()
    assert guard.quarantined.tolist() == [True, False]
