"""Reward models on text features, on preferences whose rule is known."""

from __future__ import annotations

import random

import pytest
import torch
from lm_helpers import tiny_encoder

from surefoot.errors import DataError
from surefoot.lm.data import PreferencePair
from surefoot.lm.rewards.rewards import as_rewards
from surefoot.lm.rewards.text_features import TextFeatures
from surefoot.lm.rewards.text_reward import TextReward, _slope, calibration_error

WORDS = ["rain", "tree", "bread", "cat", "snow", "book", "river", "stone", "lamp", "cloud"]


def pairs(count, *, noise=0.0, seed=0):
    """Return preferences for the text with `kind` over the one with `rude`; a share `noise` is the wrong way round."""
    rng = random.Random(seed)
    made = []
    for _ in range(count):
        texts = [f"{' '.join(rng.choices(WORDS, k=5))} {word}" for word in ("kind", "rude")]
        if rng.random() < noise:
            texts.reverse()
        made.append(PreferencePair("tell me", *texts))
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module")
def fitted(folder):
    model = TextReward(TextFeatures(folder))
    return model, model.fit(pairs(120, noise=0.1))


def test_a_rule_in_words_is_found_under_noise(fitted):
    model, fit = fitted
    assert 0.7 <= fit.accuracy <= 0.95  # the best possible is 0.9
    assert fit.interval[0] < fit.accuracy < fit.interval[1]
    assert model.accuracy(pairs(40, seed=9))["accuracy"] >= 0.95


def test_labels_that_mean_nothing_give_chance(folder):
    fit = TextReward(TextFeatures(folder)).fit(pairs(100, noise=0.5))
    assert fit.interval[0] < 0.5 < fit.interval[1]


def test_saved_and_loaded_the_scores_are_the_same_and_it_is_a_reward(fitted, tmp_path):
    model, fit = fitted
    loaded = TextReward.load(model.save(tmp_path / "judge", fit))
    talk = [{"role": "user", "content": "tell me"}, {"role": "assistant", "content": "rain kind"}]
    assert loaded([talk]) == pytest.approx(model.score(["tell me"], ["rain kind"]))
    assert as_rewards(loaded).parts[0].name == "text_reward"


def test_too_few_pairs_are_refused(folder):
    with pytest.raises(DataError, match="3 pairs are too few"):
        TextReward(TextFeatures(folder)).fit(pairs(3))


def test_the_slope_calibrates_and_the_error_is_that_of_the_bins():
    # 3 of 4 pairs are right by the same gap of 1: the log-odds are log 3.
    assert _slope(torch.tensor([1.0, 1.0, 1.0, -1.0])) == pytest.approx(1.0986, abs=1e-3)
    # Confidence σ(4.6) = 0.99 and half of the pairs right.
    assert calibration_error(torch.tensor([4.595, -4.595])) == pytest.approx(0.49, abs=1e-2)
