"""Tests of `surefoot.decide.prompts.improve`."""

from __future__ import annotations

import pytest

from surefoot.decide.prompts.classify import classify
from surefoot.decide.prompts.improve import at_random, greedy, improve, round_robin
from surefoot.decide.prompts.mutations import MUTATIONS, mutate
from surefoot.decide.prompts.scorers import FeatureScorer
from surefoot.decide.prompts.text import tokens

from .world_cases import PROMPTS, a_world


@pytest.mark.parametrize("streams", [1, 2, 5])
def test_every_prompt_is_improved_once_and_in_order(streams: int):
    results = improve(at_random(0), a_world(streams))
    assert [each.original for each in results] == PROMPTS


def test_the_numbers_of_a_result_add_up():
    scorer = FeatureScorer()
    for each in improve(greedy, a_world(2, token_cost=0.001)):
        category = classify(each.original).category
        assert each.score == pytest.approx(scorer.explain(each.text, category).score)
        assert each.gain == pytest.approx(sum(change.gain for change in each.changes))
        assert each.tokens_added == tokens(each.text) - tokens(each.original)
        assert each.reward == pytest.approx(each.gain - 0.001 * each.tokens_added)
        assert each.reward >= 0.0, "greedy stops where nothing gains"


def test_round_robin_applies_each_allowed_mutation_in_order():
    first = improve(round_robin, a_world(1))[0]
    order = [MUTATIONS.index(change.mutation) for change in first.changes]
    assert order == sorted(order)
    assert first.changes[0].text == mutate(PROMPTS[0], 0).text
