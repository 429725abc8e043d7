"""Rewards that are cut off, and ends of which a part is random."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from walks import N, T, features, walk

from surefoot.train.diagnose.reward_tests import end_stats as ends
from surefoot.train.diagnose.reward_tests import reward_stats as rewards
from surefoot.train.diagnose.step_features import StepFeatures


def test_the_share_of_rewards_at_a_limit_is_measured():
    steps = walk()
    assert rewards(features(steps))["reward_cut_share"] < 0.01
    cut = replace(steps, reward=np.minimum(steps.reward, 0.0))
    assert rewards(features(cut))["reward_cut_share"] == pytest.approx(0.5, abs=0.1)


def test_few_different_rewards_are_not_cut_off():
    steps = walk()
    assert rewards(features(replace(steps, reward=np.sign(steps.reward))))["reward_cut_share"] == 0.0


def test_the_price_of_a_control_at_its_bound_is_not_cut_off():
    steps, rng = walk(), np.random.default_rng(3)
    action = np.clip(rng.normal(size=(T, N, 1)), -1.0, 1.0).astype(np.float32)
    priced = replace(steps, action=action, reward=-(action[..., 0] ** 2).astype(np.float64))
    bounds = (np.full(1, -1.0, np.float32), np.full(1, 1.0, np.float32))
    assert rewards(StepFeatures(priced, (), bounds))["reward_cut_share"] < 0.01


def test_a_part_of_random_ends_is_measured_beside_those_that_follow_from_the_state():
    steps, rng = walk(), np.random.default_rng(4)
    assert ends(features(steps))["end_random_share"] == 0.0
    ended = steps.terminated | (rng.random((T, N)) < 0.1)
    measured = ends(features(replace(steps, terminated=ended, ended=ended)))
    assert 0.2 < measured["end_random_share"] < 0.9
