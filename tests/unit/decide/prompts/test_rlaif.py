"""Tests of `surefoot.decide.prompts.rlaif`."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.decide.prompts.improve import Change, Improved
from surefoot.decide.prompts.mutations import MUTATIONS, mutate
from surefoot.decide.prompts.rlaif import Rlaif, judge_by
from surefoot.decide.prompts.scorers import LintScorer
from surefoot.decide.prompts.text import tokens
from surefoot.errors import ConfigError

PROMPTS = [
    f"Write a {kind} about {what}."
    for kind in ("story", "report", "function")
    for what in ("bees", "tea", "ships", "rain")
]


def improved_by(mutation: int) -> list[Improved]:
    results = []
    for prompt in PROMPTS:
        text = mutate(prompt, mutation).text
        change = Change(mutation=MUTATIONS[mutation], tokens=tokens(text) - tokens(prompt), text=text)
        results.append(Improved(original=prompt, score_before=0.0, changes=[change]))
    return results


def prefers_short(first: str, second: str) -> float:
    return float(tokens(first) < tokens(second))


def gain(rlaif: Rlaif, mutation: int) -> float:
    after = rlaif.scorer.score([each.text for each in improved_by(mutation)], PROMPTS)
    return float(np.mean(after - rlaif.scorer.score(PROMPTS, PROMPTS)))


def test_the_scorer_learns_the_judges_preferences():
    rlaif = Rlaif(judge=prefers_short)
    before = gain(rlaif, 2)
    for _ in range(3):
        rlaif.round(improved_by(2))
    assert before == 0.0 > gain(rlaif, 2)


def test_people_judge_every_third_round_and_override_the_judge():
    judged_by_person = []

    def person(first: str, second: str) -> float:
        judged_by_person.append(first)
        return float(tokens(first) > tokens(second))

    rlaif = Rlaif(judge=prefers_short, person=person, human_every=3, human_pairs=4)
    rounds = [rlaif.round(improved_by(2)) for _ in range(3)]
    assert [each["human"] for each in rounds] == [False, False, True]
    assert len(judged_by_person) == 4
    assert rlaif.agreement.corrections == 4
    assert rlaif.agreement.share == 0.0
    without = Rlaif(judge=prefers_short)
    for _ in range(3):
        without.round(improved_by(2))
    assert gain(rlaif, 2) > gain(without, 2)


def test_a_judge_that_always_prefers_the_first_version_counts_as_undecided():
    rlaif = Rlaif(judge=lambda first, second: 1.0)
    assert rlaif.round(improved_by(0))["preferred"] == 0.5


def test_a_scorer_can_be_the_judge():
    judge = judge_by(LintScorer())
    better = "Write a story of 300 words about the bees of Malta."
    assert judge(better, PROMPTS[0]) > 0.7
    assert judge(better, PROMPTS[0]) + judge(PROMPTS[0], better) == pytest.approx(1.0)


def test_a_judgement_that_is_not_a_probability_is_refused():
    with pytest.raises(ConfigError, match="returned 7"):
        Rlaif(judge=lambda first, second: 7.0).round(improved_by(0))
