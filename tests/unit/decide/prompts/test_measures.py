"""Tests of `surefoot.decide.prompts.measures`."""

from __future__ import annotations

import numpy as np

from surefoot.decide.prompts.classify import classify
from surefoot.decide.prompts.measures import NAMES, measures
from surefoot.decide.prompts.mutations import mutate
from surefoot.decide.prompts.scorers import FeatureScorer, RidgeScorer, rank_correlation

from .scorers_cases import PROMPTS


def test_every_measure_is_between_0_and_1():
    for prompt in [*PROMPTS, "", "?", "x" * 4000]:
        seen = measures(prompt)
        assert tuple(seen) == NAMES
        assert all(0.0 <= x <= 1.0 for x in seen.values())


def test_a_ridge_learns_what_people_like(tmp_path):
    rng = np.random.default_rng(0)
    prompts = [
        mutate(p, int(k), seed=i).text
        for i, (p, k) in enumerate(zip(PROMPTS * 4, rng.integers(4, size=96), strict=True))
    ]
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
