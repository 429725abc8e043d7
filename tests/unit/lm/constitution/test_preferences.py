"""Preferences from scores, with ties."""

from __future__ import annotations

from surefoot.lm.constitution.preferences import PairJudgement, by_score, pairs_of

by_length = by_score(lambda prompt, response: float(len(response)))


def test_the_higher_score_is_better_and_equal_scores_are_a_tie():
    assert by_length("p", "long", "abc").better == 0
    assert by_length("p", "abc", "long").better == 1
    assert by_length("p", "abc", "xyz").better is None


def test_all_pairs_are_compared_once_and_equal_texts_are_one():
    pairs, counts = pairs_of("p", ["a", "bb", "bb", "cc"], by_length)
    assert [(p.chosen, p.rejected) for p in pairs] == [("bb", "a"), ("cc", "a")]
    assert counts == {"asked": 3, "ties": 1, "disagreed": 0}


def test_disagreement_of_the_two_orders_is_counted():
    judge = lambda prompt, one, other: PairJudgement(0, 0.6, 0.2, False)  # noqa: E731
    assert pairs_of("p", ["a", "b"], judge)[1]["disagreed"] == 1
