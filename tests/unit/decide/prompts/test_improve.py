"""Tests of `surefoot.decide.prompts.improve`."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.decide.prompts.improve import (
    at_random,
    best_of_n,
    best_sequence,
    best_single,
    fixed,
    improve,
    interval,
)
from surefoot.decide.prompts.mutations import mutate
from surefoot.decide.prompts.policy import PromptConfig
from surefoot.decide.prompts.text import tokens

PROMPTS = ["Which is heavy: iron, air or wood?", "Who wrote Hamlet?", "Write a story about bees."]
CONFIG = PromptConfig(token_cost=0.001)


class Counts:
    """Scores 1 for the cue, 1 for a sentence about the form, and counts its texts."""

    def __init__(self) -> None:
        self.scored = 0

    def score(self, prompts, originals):
        self.scored += len(prompts)
        return np.array(
            [float("Answer:" in p) + float("The answer is one of" in p or "as few words" in p) for p in prompts]
        )


def test_the_numbers_of_a_result_add_up():
    for each in improve(fixed(("answer-cue", "role"), CONFIG), PROMPTS, Counts(), token_cost=0.001):
        assert each.gain == 1.0
        assert each.tokens_added == tokens(each.text) - tokens(each.original)
        assert each.reward == pytest.approx(1.0 - 0.001 * each.tokens_added)
        assert each.to_json()["text"] == each.changes[-1].text


def test_a_fixed_sequence_skips_what_is_not_possible():
    (result,) = improve(fixed(("step-by-step", "answer-cue"), CONFIG), [PROMPTS[2]], Counts())
    assert [change.mutation for change in result.changes] == ["answer-cue"]
    assert result.text == mutate(PROMPTS[2], "answer-cue").text


def test_the_best_mutation_and_sequence_are_found_within_their_number_of_scores():
    scorer = Counts()
    assert best_single(scorer, PROMPTS, CONFIG, 60) == ("answer-cue",)
    assert scorer.scored <= 100
    assert set(best_sequence(Counts(), PROMPTS, CONFIG, 500)) == {"answer-cue", "answer-form"}
    assert "answer-cue" in best_of_n(Counts(), PROMPTS, CONFIG, 500)


def test_random_mutations_are_the_same_for_the_same_seed():
    one, other = (improve(at_random(CONFIG, seed=5), PROMPTS * 3, Counts()) for _ in range(2))
    assert [each.text for each in one] == [each.text for each in other]
    assert all(len(each.changes) <= CONFIG.max_steps for each in one)


def test_the_interval_of_a_constant_is_a_point_and_that_of_a_coin_is_known():
    assert interval([0.5] * 10) == (0.5, 0.5, 0.5)
    mean, low, high = interval([0.0, 1.0] * 200)
    # 1.96 * sqrt(0.25 / 400) = 0.049
    assert mean == 0.5
    assert (low, high) == (pytest.approx(0.451, abs=0.01), pytest.approx(0.549, abs=0.01))
