"""Tests of `surefoot.decide.prompts.constrain`."""

from __future__ import annotations

from surefoot.decide.prompts import constrain
from surefoot.decide.prompts.mutations import mutate

from .mutations_cases import CODE


def test_constraints_are_those_of_the_category_and_follow_from_the_seed():
    one, again, other = (mutate(CODE, "constraint-addition", seed=seed) for seed in (1, 1, 2))
    assert one.text == again.text
    assert one.metadata["category"] == "CODE_GENERATION"
    assert set(one.metadata["constraints"]) <= set(constrain.LIBRARY["CODE_GENERATION"])
    assert {mutate(CODE, 3, seed=seed).text for seed in range(8)} != {one.text} or other.text != one.text
