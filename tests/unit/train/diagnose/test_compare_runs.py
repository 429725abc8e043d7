"""Runs grouped by what differs in their settings, and the chance that one group is better."""

import numpy as np
import pytest

from surefoot.train.diagnose.compare_runs import RunScore, chance, differences, group


def one(name: str, score: float, **settings: str) -> RunScore:
    steps = np.array([0.0, 10.0])
    return RunScore(name=name, env="E", settings=settings, score=score, steps=steps, values=np.array([0.0, score]))


RUNS = [one("a", 1.0, lr="1", seed_of="x"), one("b", 3.0, lr="1", seed_of="x"), one("c", 5.0, lr="2", seed_of="x")]


def test_only_settings_with_several_values_differ() -> None:
    assert differences(RUNS) == {"lr": ["1", "2"]}


def test_seeds_of_one_setting_are_one_group_with_a_middle_curve() -> None:
    first, second = group(RUNS)
    assert (first.label, first.runs, first.scores) == ("lr=1", ["a", "b"], [1.0, 3.0])
    assert second.runs == ["c"]
    assert first.middle[[0, -1]] == pytest.approx([0.0, 2.0])
    assert (first.low <= first.middle + 1e-12).all()


def test_the_chance_counts_ties_half() -> None:
    assert chance([1.0, 2.0], [1.0]) == pytest.approx(0.75)
