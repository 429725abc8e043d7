"""Samples of behaviours, and samples as episodes."""

import numpy as np
import pytest

from surefoot.errors import ConfigError
from surefoot.town.scenarios.scenario import load_scenario
from surefoot.town.training.capture import capture_behaviour, capture_samples, policy_hash
from surefoot.town.training.spec import town_spec, town_training

SCENARIO = load_scenario("queue_conflict")


def test_random_actions_have_the_log_prob_of_a_uniform_choice():
    sample = capture_behaviour(SCENARIO, "random", 6, seed=0).samples[0]
    assert sample.action_masks is not None
    assert sample.old_log_probs == pytest.approx(-np.log(sample.action_masks.sum(axis=1)))
    assert capture_behaviour(SCENARIO, "script", 6, seed=0).samples[0].old_log_probs.tolist() == [0.0] * 6


def test_a_policy_is_captured_with_its_hash_and_needs_a_tick():
    policy = town_training(town_spec(SCENARIO, towns=1, rollout_ticks=4, steps=12, settings={"hidden": "8"})).policy
    samples = capture_samples(policy, SCENARIO, 5, seed=3)
    assert len(samples.samples) == 3
    assert samples.samples[0].meta["capture_metadata"]["policy_hash"] == policy_hash(policy)
    with pytest.raises(ConfigError, match="ticks is 0"):
        capture_samples(policy, SCENARIO, 0, seed=3)
