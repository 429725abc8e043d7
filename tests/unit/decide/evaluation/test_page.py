"""Tests of `surefoot.decide.evaluation.page`."""

from __future__ import annotations

from surefoot.decide.evaluation.page import page_of
from surefoot.decide.evaluation.summary import summary_of


def test_a_page_without_known_answers_says_so():
    rows = [{"chosen": "a", "reward": 0.7, "probability": 0.9, "confidence": 0.5}] * 3
    written = page_of(summary_of(rows), "a run")
    assert "nobody said which option would have been right" in written
    assert "Confusion" not in written
