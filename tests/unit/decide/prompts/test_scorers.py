from __future__ import annotations

import numpy as np
import pytest

from surefoot.decide.prompts.classify import CATEGORIES, classify
from surefoot.decide.prompts.mutations import mutate
from surefoot.decide.prompts.scorers import CallableScorer, FeatureScorer, RidgeScorer, rank_correlation
from surefoot.errors import ConfigError, ShapeError

from .scorers_cases import PROMPTS


def test_a_score_is_the_sum_of_what_it_says_it_is_made_of():
    told = FeatureScorer().explain(PROMPTS[1])
    assert told.score == pytest.approx(min(1.0, sum(told.breakdown.values())))
    assert "says nothing of" in FeatureScorer().explain(PROMPTS[4]).explanation


def test_a_better_prompt_scores_higher_and_unchanged_ones_are_spread():
    scores = FeatureScorer().score(PROMPTS, [classify(p).category for p in PROMPTS])
    assert (scores[1::2] > scores[0::2]).all()
    assert scores.std() > 0.08
    assert scores.max() < 0.9


def test_the_same_mutation_earns_differently_by_category():
    scorer, prompt = FeatureScorer(), "Describe the new system."
    after = mutate(prompt, "try-catch-style").text
    gains = [scorer.explain(after, c).score - scorer.explain(prompt, c).score for c in CATEGORIES]
    assert max(gains) - min(gains) > 0.05


def test_scores_out_of_range_and_files_of_others_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="between 0 and 1"):
        RidgeScorer().fit(["a"] * 4, [1, 2, 3, 4])
    with pytest.raises(ShapeError, match="4 prompts and 2 scores"):
        RidgeScorer().fit(["a"] * 4, [0.5, 0.5])
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(ConfigError, match="is not a saved scorer"):
        RidgeScorer.load(tmp_path / "x.json")
    with pytest.raises(ConfigError, match="gave 7"):
        CallableScorer(lambda prompt: 7.0).score(["a"], ["GENERAL_QA"])


def test_rank_correlation_knows_ties():
    assert rank_correlation(np.array([1, 2, 3]), np.array([10, 20, 30])) == pytest.approx(1.0)
    assert rank_correlation(np.array([1, 1, 1]), np.array([1, 2, 3])) == 0.0
    assert rank_correlation(np.array([1, 2, 2, 3]), np.array([4, 3, 3, 1])) == pytest.approx(-1.0)
