"""Tests of `surefoot.decide.prompts.scorers`."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.decide.prompts.classify import CATEGORIES, classify
from surefoot.decide.prompts.measures import measures
from surefoot.decide.prompts.mutations import mutate
from surefoot.decide.prompts.scorers import CallableScorer, FeatureScorer, RidgeScorer, rank_correlation
from surefoot.errors import ConfigError, ShapeError

from .scorers_cases import PROMPTS


def test_a_score_is_the_sum_of_its_terms():
    explained = FeatureScorer().explain(PROMPTS[1])
    assert explained.score == pytest.approx(min(1.0, sum(explained.breakdown.values())))
    assert "nothing about" in FeatureScorer().explain(PROMPTS[4]).explanation


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


def test_scores_out_of_range_and_foreign_files_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="between 0 and 1"):
        RidgeScorer().fit(["a"] * 4, [1, 2, 3, 4])
    with pytest.raises(ShapeError, match="4 prompts and 2 scores"):
        RidgeScorer().fit(["a"] * 4, [0.5, 0.5])
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(ConfigError, match="is not a saved scorer"):
        RidgeScorer.load(tmp_path / "x.json")
    with pytest.raises(ConfigError, match="returned 7"):
        CallableScorer(lambda prompt: 7.0).score(["a"], ["GENERAL_QA"])


def test_rank_correlation_knows_ties():
    assert rank_correlation(np.array([1, 2, 3]), np.array([10, 20, 30])) == pytest.approx(1.0)
    assert rank_correlation(np.array([1, 1, 1]), np.array([1, 2, 3])) == 0.0
    assert rank_correlation(np.array([1, 2, 2, 3]), np.array([4, 3, 3, 1])) == pytest.approx(-1.0)


def test_a_ridge_learns_human_preferences(tmp_path):
    rng = np.random.default_rng(0)
    prompts = [mutate(p, int(k)).text for p, k in zip(PROMPTS * 4, rng.integers(4, size=96), strict=True)]
    liked = np.array([0.2 + 0.6 * measures(p)["brief"] for p in prompts])
    kinds = [classify(p).category for p in prompts]
    before = rank_correlation(FeatureScorer().score(prompts, kinds), liked)
    scorer = RidgeScorer(strength=0.3)
    fit = scorer.fit(prompts, liked, kinds)
    assert fit.rank_correlation > max(0.8, before + 0.2)
    assert fit.mae < 0.1
    scorer.save(tmp_path / "scorer.json")
    again = RidgeScorer.load(tmp_path / "scorer.json")
    assert np.array_equal(again.score(prompts, kinds), scorer.score(prompts, kinds))
