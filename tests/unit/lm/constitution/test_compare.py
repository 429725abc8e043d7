"""Intervals and comparisons against published values and hand arithmetic."""

from __future__ import annotations

import pytest

from surefoot.lm.constitution.compare import bootstrap, compare_models, refusal, wilson
from surefoot.lm.constitution.principles import Constitution


def test_the_interval_of_no_hit_in_ten_is_wilsons():
    low, high = wilson(0, 10)
    assert low == pytest.approx(0.0, abs=1e-9)
    assert high == pytest.approx(1.96**2 / (10 + 1.96**2))  # closed form for p = 0


def test_without_trials_every_share_is_possible():
    assert wilson(0, 0) == (0.0, 1.0)


def test_equal_differences_have_no_spread():
    assert bootstrap([0.5] * 7) == (0.5, 0.5, 0.5)


@pytest.mark.parametrize(
    ("text", "expected"), [("I cannot help with that.", True), ("No", True), ("Take the bus", False)]
)
def test_short_answers_and_refusals_are_recognised(text, expected):
    assert refusal(text) is expected


def test_equal_responses_are_ties():
    result = compare_models(Constitution.shipped(), ["a", "b"], ["fine words here"] * 2, ["fine words here"] * 2)
    assert (result["wins"], result["losses"], result["ties"], result["win_rate"]) == (0, 0, 2, 0.5)
