"""Observations that are rounded, noisy, held or carried over a reset are told from those of a sound process."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from walks import N, T, features, walk

from surefoot.train.diagnose.observation_tests import observation_stats as observations
from surefoot.train.diagnose.step_features import StepFeatures, Steps


def measured(steps: Steps) -> dict[str, float]:
    return observations(features(steps))


def smooth(seed: int = 0) -> Steps:
    """A walk of small steps in both numbers, whose episodes never end: what is rounded stays the same for some steps."""
    rng = np.random.default_rng(seed)
    action = rng.integers(0, 2, (T, N))
    angle = np.cumsum(0.4 * action - 0.2 + 0.1 * rng.normal(size=(T, N)), axis=0)
    obs = np.stack([np.sin(angle + k) * 3.0 for k in range(2)], axis=2)
    never = np.zeros((T, N), bool)
    return replace(walk(), obs=obs, action=action, reward=obs[..., 0], terminated=never, ended=never, start=never)


def test_rounding_hides_what_the_step_before_still_knows():
    steps = smooth()
    assert "obs_rounded" not in measured(steps)  # many numbers
    assert measured(replace(steps, obs=np.trunc(steps.obs)))["obs_rounded"] > 0.1


def test_a_process_of_few_values_in_which_the_past_does_not_matter_is_not_rounded():
    rng = np.random.default_rng(1)
    place = np.zeros((T, N, 1))
    for t in range(1, T):
        place[t, :, 0] = np.clip(place[t - 1, :, 0] + rng.integers(-1, 2, N), 0, 6)
    never = np.zeros((T, N), bool)
    steps = replace(walk(), obs=place, terminated=never, ended=never, start=never)
    assert measured(steps)["obs_rounded"] == 0.0


def test_noise_of_a_sensor_is_taken_back_and_that_of_the_world_is_not():
    steps, rng = walk(noise=1.0), np.random.default_rng(2)
    # The second number of the walk is noise by itself; here only the first.
    alone = replace(steps, obs=steps.obs[..., :1])
    assert measured(alone)["obs_noise"] < 0.1
    assert measured(replace(alone, obs=alone.obs + rng.normal(size=(T, N, 1))))["obs_noise"] > 0.12


def test_a_number_that_is_held_is_stale_and_a_goal_of_an_episode_is_not():
    steps = smooth()
    held = steps.obs.copy()
    held[1::2, :, 0] = held[::2, :, 0]
    assert measured(replace(steps, obs=held))["obs_repeat_share"] == pytest.approx(0.5, abs=0.1)
    goal = np.concatenate([steps.obs, np.ones((T, 1, 1)) * np.arange(N)[:, None]], axis=2)
    assert measured(replace(steps, obs=goal))["obs_repeat_share"] == 0.0


def test_a_reset_that_continues_depends_on_the_last_observation():
    steps = walk()
    assert measured(steps)["reset_dependence"] == 0.0
    carried = steps.obs.copy()
    for t in range(1, T):
        carried[t] = np.where(steps.start[t][:, None], 0.9 * carried[t - 1], carried[t])
    assert measured(replace(steps, obs=carried))["reset_dependence"] > 0.9


def test_a_reset_in_a_step_of_its_own_is_found_behind_the_step_that_does_not_count():
    steps = walk()
    obs, valid, start = steps.obs.copy(), steps.valid.copy(), steps.start.copy()
    for t in range(T - 2):
        at = steps.ended[t] & valid[t]
        valid[t + 1] &= ~at
        start[t + 1] &= ~at
        start[t + 2] |= at
        obs[t + 2] = np.where(at[:, None], obs[t], obs[t + 2])
    assert observations(StepFeatures(replace(steps, obs=obs, valid=valid, start=start), (2,)))["reset_dependence"] > 0.8
