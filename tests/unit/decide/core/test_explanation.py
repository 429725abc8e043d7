"""Tests of `surefoot.decide.core.explanation`."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.decide.core.explanation import PastDecisions, explain
from surefoot.decide.core.record import DecisionRecord
from surefoot.decide.policy.choosers import OptionChoice
from surefoot.decide.policy.outcome_model import Scene


def record(
    id: str, vector: list[float], *, index: int = 0, probabilities: tuple[float, ...] = (0.7, 0.3)
) -> DecisionRecord:
    choice = OptionChoice(
        at=index,
        probability=probabilities[index],
        probabilities=np.array(probabilities),
        prior=np.array([0.2, 0.5]),
        learned=np.array([0.4, -0.1]),
    )
    names = ["weather", "music"]
    scene = Scene(x=np.array(vector, np.float32), option=np.arange(2), cosine=np.zeros(2, np.float32))
    return DecisionRecord(id=id, name=names[index], names=names, scene=scene, choice=choice, confidence=0.6, text=id)


def test_candidates_are_sorted_by_prior_plus_learned_part():
    explanation = explain(record("a", [1, 0]), [])
    assert [row["name"] for row in explanation.candidates] == ["weather", "music"]
    assert explanation.candidates[0]["worth"] == pytest.approx(0.6)
    assert explanation.exploration == pytest.approx(0.3)


def test_a_choice_other_than_the_most_probable_one_is_an_exploration():
    assert not explain(record("a", [1, 0], index=0), []).explored
    assert explain(record("a", [1, 0], index=1), []).explored


def test_without_known_probabilities_the_choice_counts_as_the_favourite():
    unknown = record("a", [1, 0], index=1, probabilities=(float("nan"), float("nan")))
    assert not explain(unknown, []).explored


def test_the_most_similar_past_decisions_come_first_and_the_oldest_is_dropped():
    past = PastDecisions(capacity=2)
    # The third number is an extra feature: it must not count as a part of the text's vector.
    for id, vector in (("old", [1.0, 0.0, 9.0]), ("near", [0.8, 0.6, 9.0]), ("far", [0.0, 1.0, 9.0])):
        past.add(record(id, vector), 2, reward=1.0)
    nearest = past.nearest(np.array([1.0, 0.0], np.float32), 3)
    assert [(each.text, round(each.similarity, 3)) for each in nearest] == [("near", 0.8), ("far", 0.0)]
    assert past.nearest(np.array([1.0, 0.0], np.float32), 0) == []
