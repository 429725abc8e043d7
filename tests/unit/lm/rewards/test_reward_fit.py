"""Fitting reward models: the parts that hand arithmetic can check. `test_reward_model.py` fits whole models."""

from __future__ import annotations

import math

import pytest
import torch
from lm_helpers import char_tokenizer

from surefoot.errors import DataError
from surefoot.lm.data import PreferencePair
from surefoot.lm.policy.loading import Speech
from surefoot.lm.rewards.reward_fit import RewardFit, bradley_terry, encode_pairs


def test_equal_scores_cost_log_2_and_a_margin_raises_the_cost():
    loss = bradley_terry(torch.zeros(1), torch.zeros(1))
    assert loss.item() == pytest.approx(math.log(2))
    assert bradley_terry(torch.zeros(1), torch.zeros(1), 1.0).item() == pytest.approx(math.log(1 + math.e))


def test_a_long_prompt_loses_its_start():
    ((chosen, rejected),) = encode_pairs([PreferencePair("abcdef", "xy", "z")], Speech(char_tokenizer()), max_length=4)
    text = Speech(char_tokenizer()).text
    assert (text(chosen), text(rejected)) == ("efxy", "defz")


def test_a_pair_with_an_empty_side_is_refused():
    with pytest.raises(DataError, match="empty side"):
        encode_pairs([PreferencePair("", "yes", "")], Speech(char_tokenizer()))


def test_the_final_accuracy_is_that_of_the_best_epoch():
    fit = RewardFit(losses=[1.0, 0.5], accuracy=[0.6, 0.9], val_accuracy=[0.7, 0.6], best_epoch=0)
    report = fit.to_json()
    assert (report["final_accuracy"], report["final_loss"], report["epochs"]) == (0.7, 0.5, 2)
