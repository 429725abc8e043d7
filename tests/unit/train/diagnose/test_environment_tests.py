"""The environment's tests on a process that is known: x moves by the action, the reward is x, an episode ends at |x| > 3."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from walks import N, T, walk

from surefoot.data.rollout import Rollout
from surefoot.train.diagnose.environment_tests import WINDOWS, EnvironmentMonitor, environment_stats
from surefoot.train.diagnose.step_features import Steps


def stats(steps: Steps) -> dict[str, float]:
    return environment_stats(steps, (2,))


def test_a_plain_process_shows_effects_rewards_and_ends():
    measured = stats(walk())
    assert measured["action_effect"] > 0.9
    assert measured["action_effect_late"] < 0.05
    assert measured["reward_explained"] > 0.99
    assert measured["reward_lag"] == 0.0
    assert measured["end_explained"] > 0.95
    assert measured["obs_explained"] > 0.7
    assert measured["obs_constant_share"] == measured["obs_repeat_share"] == measured["obs_clock_share"] == 0.0


def test_actions_that_are_not_carried_out_have_no_effect():
    assert abs(stats(walk(effect=0.0))["action_effect"]) < 0.02


@pytest.mark.parametrize("lag", [1, 3])
def test_actions_that_come_late_have_their_effect_late(lag: int):
    steps = walk()
    measured = stats(replace(steps, action=np.roll(steps.action, -lag, axis=0)))
    assert measured["action_effect"] < 0.1
    assert measured["action_effect_late"] > 0.5


def test_constant_repeated_counted_and_cut_off_observations_are_told_apart():
    steps, count = walk(), np.arange(T)[:, None, None] * np.ones((1, N, 1))
    constant = stats(replace(steps, obs=np.ones((T, N, 2))))
    repeated = stats(replace(steps, obs=np.repeat(steps.obs[::4], 4, axis=0), start=np.zeros((T, N), bool)))
    counted = stats(replace(steps, obs=np.concatenate([steps.obs, count], axis=2)))
    cut_off = stats(replace(steps, obs=np.clip(1e3 * steps.obs, -1, 1)))
    assert constant["obs_constant_share"] == 1.0
    assert repeated["obs_repeat_share"] == pytest.approx(0.75, abs=0.05)
    assert counted["obs_clock_share"] == pytest.approx(1 / 3)
    assert cut_off["obs_saturated_share"] == 1.0


def test_shuffled_observations_do_not_follow_from_each_other():
    steps, rng = walk(), np.random.default_rng(3)
    obs = rng.permutation(steps.obs.reshape(T * N, 2)).reshape(T, N, 2)
    assert stats(replace(steps, obs=obs))["obs_explained"] < 0.1


def test_numbers_that_drop_out_are_told_from_a_sensor_that_sees_nothing_for_a_while():
    steps, rng = walk(), np.random.default_rng(6)
    lost = np.where(rng.random((T, N, 2)) < 0.5, 0.0, steps.obs)
    assert stats(steps)["obs_dropout_share"] == 0.0
    assert stats(replace(steps, obs=lost))["obs_dropout_share"] == 1.0
    silent = np.where(np.sin(np.arange(T) / 10)[:, None, None] > 0, 0.0, steps.obs)
    flag = (rng.random((T, N, 2)) < 0.5).astype(np.float64)
    for odd in (silent, flag):
        assert stats(replace(steps, obs=odd))["obs_dropout_share"] == 0.0


def test_streams_with_their_own_sign_of_observations_differ():
    steps = walk()
    assert stats(steps)["stream_difference"] < 0.1
    mixed = steps.obs.copy()
    mixed[:, ::2, 0] *= -1.0
    assert stats(replace(steps, obs=mixed))["stream_difference"] > 0.9


def test_a_reward_of_noise_is_not_explained_and_a_late_one_names_its_delay():
    steps, rng = walk(), np.random.default_rng(4)
    noisy = stats(replace(steps, reward=rng.normal(size=(T, N))))
    assert noisy["reward_explained"] < 0.1
    assert noisy["reward_roughness"] == pytest.approx(1.0, abs=0.1)
    drifting = stats(replace(steps, reward=-np.linspace(1.0, 2.0, T)[:, None] * np.ones((1, N))))
    assert drifting["reward_roughness"] < 0.01
    impulse = rng.normal(size=(T, N, 2))
    late = replace(steps, obs=impulse, reward=np.roll(impulse[..., 0], 3, axis=0), ended=np.zeros((T, N), bool))
    late = replace(late, terminated=late.ended, start=late.ended)
    assert stats(late)["reward_lag"] == 3.0


def test_random_ends_cannot_be_predicted():
    steps, rng = walk(), np.random.default_rng(5)
    ended = rng.random((T, N)) < 0.1
    measured = stats(replace(steps, terminated=ended, ended=ended))
    assert 0.4 < measured["end_explained"] < 0.65


def test_a_deterministic_policy_gets_no_answer_about_its_actions():
    steps = walk()
    chosen = (steps.obs[..., 0] > 0).astype(np.int64)
    obs = np.where(chosen, 1.0, -1.0)[..., None] + 1e-3 * steps.obs[..., :1]
    assert "action_effect" not in stats(replace(steps, action=chosen, obs=obs))


def test_a_policy_that_has_decided_gets_no_answer_about_its_actions():
    steps = walk()
    assert "action_effect" not in stats(replace(steps, log_prob=np.full((T, N), np.log(0.95))))


def test_numbers_that_are_not_finite_are_left_to_their_own_rule():
    steps = walk()
    steps.obs[3, 2, 0] = np.nan
    assert stats(steps) == {}


def test_the_monitor_tests_a_window_when_it_is_full_and_again_after_enough_episodes():
    steps, monitor = walk(), EnvironmentMonitor((2,))
    # Nothing ends: the second test waits for the limit of the window.
    never = np.zeros((T, N), bool)
    steps = replace(steps, terminated=never, ended=never)
    results = [monitor.add(_rollout(steps, slice(0, 256)), k) for k in range(10)]
    assert [bool(result) for result in results] == [True, *[False] * 6, True, False, False]
    # A window of episodes is complete at once; between windows nothing is gathered.
    results = [monitor.add(_rollout(walk(), slice(32 * k, 32 * k + 32)), 40 + k) for k in range(9)]
    assert [bool(result) for result in results] == [False] * 7 + [True, False]
    assert results[7]["action_effect"] > 0.9
    assert 48 not in WINDOWS


def _rollout(steps: Steps, rows: slice) -> Rollout:
    shape = steps.reward[rows].shape
    zeros = np.zeros(shape, np.float32)
    return Rollout(
        obs={"obs": steps.obs[rows].astype(np.float32)},
        action=steps.action[rows],
        log_prob=steps.log_prob[rows].astype(np.float32),
        value=zeros,
        next_value=zeros,
        reward=steps.reward[rows].astype(np.float32),
        terminated=steps.terminated[rows],
        truncated=np.zeros(shape, bool),
        start=steps.start[rows],
        valid=np.ones(shape, bool),
        policy_version=np.zeros(shape, np.int64),
    )
