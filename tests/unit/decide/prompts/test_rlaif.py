from __future__ import annotations

import numpy as np
import pytest

from surefoot.decide.prompts.classify import classify
from surefoot.decide.prompts.improve import Change, Improved
from surefoot.decide.prompts.mutations import MUTATIONS, mutate
from surefoot.decide.prompts.rlaif import Rlaif, judge_by
from surefoot.decide.prompts.scorers import FeatureScorer
from surefoot.decide.prompts.text import tokens
from surefoot.errors import ConfigError

PROMPTS = [
    f"Write a {kind} about {what}."
    for kind in ("story", "report", "function")
    for what in ("bees", "tea", "ships", "rain")
]


def made(mutation: int) -> list[Improved]:
    found = []
    for prompt in PROMPTS:
        text = mutate(prompt, mutation).text
        change = Change(mutation=MUTATIONS[mutation], gain=0.0, tokens=tokens(text) - tokens(prompt), text=text)
        found.append(Improved(original=prompt, score_before=0.0, changes=[change]))
    return found


def prefers_short(one: str, other: str) -> float:
    return float(tokens(one) < tokens(other))


def gain(rlaif: Rlaif, mutation: int) -> float:
    kinds = [classify(p).category for p in PROMPTS]
    after = rlaif.scorer.score([each.text for each in made(mutation)], kinds)
    return float(np.mean(after - rlaif.scorer.score(PROMPTS, kinds)))


def test_the_scorer_takes_on_what_the_judge_prefers():
    rlaif = Rlaif(judge=prefers_short)
    before = gain(rlaif, 2)
    for _ in range(3):
        rlaif.round(made(2))
    assert before > 0.0 > gain(rlaif, 2)


def test_people_are_asked_every_third_round_and_their_word_counts():
    asked = []

    def person(one: str, other: str) -> float:
        asked.append(one)
        return float(tokens(one) > tokens(other))

    rlaif = Rlaif(judge=prefers_short, person=person, human_every=3, human_pairs=4)
    told = [rlaif.round(made(2)) for _ in range(3)]
    assert [each["human"] for each in told] == [False, False, True]
    assert len(asked) == 4
    assert rlaif.agreement.corrections == 4
    assert rlaif.agreement.share == 0.0
    without = Rlaif(judge=prefers_short)
    for _ in range(3):
        without.round(made(2))
    assert gain(rlaif, 2) > gain(without, 2)


def test_a_judge_that_likes_whatever_comes_first_says_nothing():
    rlaif = Rlaif(judge=lambda one, other: 1.0)
    assert rlaif.round(made(0))["preferred"] == 0.5


def test_a_scorer_can_be_the_judge():
    judge = judge_by(FeatureScorer())
    better = mutate(PROMPTS[0], 3).text
    assert judge(better, PROMPTS[0]) > 0.7
    assert judge(better, PROMPTS[0]) + judge(PROMPTS[0], better) == pytest.approx(1.0)


def test_a_judge_that_is_no_probability_is_refused():
    with pytest.raises(ConfigError, match="said 7"):
        Rlaif(judge=lambda one, other: 7.0).round(made(0))
