"""DPO and IPO: the losses by hand, the reference, learning, and resuming to the last bit."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from lm_helpers import VOCABULARY, char_tokenizer, tiny

from surefoot.errors import ConfigError, DataError
from surefoot.lm.config import LMConfig
from surefoot.lm.data import PreferencePair
from surefoot.lm.dpo import DPOTraining, preference_loss
from surefoot.lm.policy.backbone import Backbone

PAIRS = [PreferencePair(f"ask {letter}", "aaaa bbb", "zzzz yy") for letter in "abcdefghijkl"]


def dpo(pairs=PAIRS, *, lr=3e-3, **how):
    config = LMConfig(**{"algorithm": "dpo", "beta": 0.1, "steps": 6, "prompts": 4, "max_new_tokens": 4, **how})
    backbone = Backbone(tiny(vocabulary=VOCABULARY), train=config.train, top=config.top)
    return DPOTraining(backbone, char_tokenizer(), pairs, config, ppo=config.ppo(lr=lr))


def test_the_losses_are_those_of_the_papers():
    h = torch.tensor([0.0, 2.0, -3.0])
    by_hand = [math.log(1 + math.exp(-0.1 * x)) for x in h.tolist()]
    assert preference_loss("dpo", h, 0.1).tolist() == pytest.approx(by_hand, abs=1e-6)
    flipped = [math.log(1 + math.exp(0.1 * x)) for x in h.tolist()]
    smooth = [0.8 * a + 0.2 * b for a, b in zip(by_hand, flipped, strict=True)]
    assert preference_loss("dpo", h, 0.1, 0.2).tolist() == pytest.approx(smooth, abs=1e-6)
    assert preference_loss("ipo", h, 0.5).tolist() == pytest.approx([1.0, 1.0, 16.0])


def test_margins_are_the_differences_of_log_probs_that_transformers_gives():
    training = dpo(top=1)
    training.step()  # so that policy and reference differ
    with torch.no_grad():
        got = training.margins([0, 5])[0]

    def log_prob(prompt, response):
        ids = torch.from_numpy(np.concatenate([prompt, response]))[None]
        logits = training.policy.backbone.model(ids).logits[0, :-1].log_softmax(-1)
        return logits.gather(1, ids[0, 1:, None])[len(prompt) - 1 :].sum()

    for number, margin in zip((0, 5), got, strict=True):
        good, bad = training.pairs[number][1]
        with torch.no_grad():
            now = log_prob(*good) - log_prob(*bad)
            with training.policy.reference():
                before = log_prob(*good) - log_prob(*bad)
        assert float(margin) == pytest.approx(float(now - before), abs=1e-4)
        assert abs(float(margin)) > 1e-4


@pytest.mark.parametrize("algorithm", ["dpo", "ipo"])
def test_held_out_pairs_become_right(algorithm):
    training = dpo(algorithm=algorithm, steps=12, judge_every=12, lr=1e-2)
    first = training.step()
    while not training.finished:
        step = training.step()
    assert step.stats["held_out_accuracy"] == 1.0
    assert step.stats["held_out_loss"] < first.stats["held_out_loss"]
    assert step.stats["chosen_log_ratio"] > step.stats["rejected_log_ratio"]


def test_a_run_in_two_halves_is_the_same_to_the_last_bit():
    whole, half = dpo(), dpo()
    for _ in range(6):
        whole.step()
    for _ in range(3):
        half.step()
    rest = dpo()
    rest.set_state(half.state())
    while not rest.finished:
        rest.step()
    for name, x in whole.policy.state_dict().items():
        assert torch.equal(x, rest.policy.state_dict()[name])


def test_pairs_that_do_not_fit_are_left_out_and_counted():
    training = dpo([*PAIRS, PreferencePair("ask", "a" * 5000, "b")])
    assert len(training.pairs) == len(PAIRS)
    assert "pair 13 has" in training.skipped[0]
    with pytest.raises(DataError, match="1 of 1 pairs can be used"):
        dpo(PAIRS[:1])


def test_settings_that_mean_nothing_here_are_refused():
    with pytest.raises(ConfigError, match="beta is 0"):
        dpo(beta=0.0)
    with pytest.raises(ConfigError, match="kl_budget is measured on rollouts"):
        dpo(kl_budget=3.0)
    with pytest.raises(ConfigError, match="learned by dpo or ipo"):
        dpo(algorithm="ppo")
