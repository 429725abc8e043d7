"""Tests of `surefoot.decide.prompts.scorers`."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.decide.prompts.lint import lint
from surefoot.decide.prompts.scorers import CallableScorer, LintScorer, RidgeScorer, rank_correlation
from surefoot.decide.prompts.text import tokens
from surefoot.errors import ConfigError, ShapeError

PROMPTS = [
    f"{verb} {what}{more}"
    for verb in ("Write a report about", "Explain", "List three facts about", "Summarise the history of")
    for what in ("bees", "the Aral Sea", "rye bread", "TCP and UDP")
    for more in (".", " in 50 words.", ", and name 2 books.\n\nConstraints:\n- be clear\n- be brief")
]


def test_the_lint_is_a_scorer():
    assert LintScorer().score(PROMPTS, PROMPTS).tolist() == [lint(prompt).score for prompt in PROMPTS]


def test_scores_out_of_range_and_foreign_files_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="between 0 and 1"):
        RidgeScorer().fit(["a"] * 4, [1, 2, 3, 4])
    with pytest.raises(ShapeError, match="4 prompts and 2 scores"):
        RidgeScorer().fit(["a"] * 4, [0.5, 0.5])
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(ConfigError, match="is not a saved scorer"):
        RidgeScorer.load(tmp_path / "x.json")
    with pytest.raises(ConfigError, match="returned 7"):
        CallableScorer(lambda prompt: 7.0).score(["a"], ["a"])


def test_rank_correlation_knows_ties():
    assert rank_correlation(np.array([1, 2, 3]), np.array([10, 20, 30])) == pytest.approx(1.0)
    assert rank_correlation(np.array([1, 1, 1]), np.array([1, 2, 3])) == 0.0
    assert rank_correlation(np.array([1, 2, 2, 3]), np.array([4, 3, 3, 1])) == pytest.approx(-1.0)


def test_a_ridge_learns_human_preferences(tmp_path):
    liked = np.array([0.9 - 0.02 * tokens(prompt) for prompt in PROMPTS])
    before = rank_correlation(LintScorer().score(PROMPTS, PROMPTS), liked)
    scorer = RidgeScorer(strength=0.3)
    fit = scorer.fit(PROMPTS, liked)
    assert fit.rank_correlation > max(0.8, before + 0.2)
    assert fit.mae < 0.1
    scorer.save(tmp_path / "scorer.json")
    again = RidgeScorer.load(tmp_path / "scorer.json")
    assert np.array_equal(again.score(PROMPTS, PROMPTS), scorer.score(PROMPTS, PROMPTS))
