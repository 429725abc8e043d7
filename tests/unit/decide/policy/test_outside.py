"""Tests of `surefoot.decide.policy.outside`."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.decide.policy.outcome_model import BIAS, with_bias
from surefoot.decide.policy.outside import DECAY, RATE, against_outside, moved_outside

X = with_bias(np.array([[0.6, 0.8]], np.float32))


def test_a_success_moves_the_level_as_by_hand():
    """One success with chances .7 of the right one, .2 of another, .1 of "none"; "outside" is where "none" is."""
    chance = np.array([[0.7, 0.2, 0.1]], np.float32)
    moved = moved_outside(np.zeros(3, np.float32), 0.0, chance, np.array([0]), np.ones(1, np.float32), X)
    # Without the right one "outside" has .1 of .3 and should have all; with it, it has .1 and should have none.
    assert moved[-1] == pytest.approx(RATE / BIAS * ((1 - 0.1 / 0.3) - 0.1), rel=1e-4)
    assert moved[:2] == pytest.approx(-RATE * 0.1 * X[0, :2], rel=1e-4)


def test_a_failure_raises_it_for_such_queries_only():
    level = np.array([0.0, 0.0, 1.0], np.float32)
    chance = np.array([[0.5, 0.1, 0.4]], np.float32)
    moved = moved_outside(level, 1.0, chance, np.array([0]), np.zeros(1, np.float32), X)
    assert moved[:2] == pytest.approx(RATE * 0.4 * 0.5 / 0.5 * X[0, :2], rel=1e-4)
    assert moved[-1] == level[-1], "a failure does not tell whether another one was right"


def test_the_part_of_the_query_fades_and_nothing_overflows():
    level = np.array([1.0, 0.0, 1e6], np.float32)
    chance = np.array([[1.0, 0.0, 0.0]], np.float32)
    moved = moved_outside(level, -1e6, chance, np.array([0]), np.ones(1, np.float32), X)
    assert np.isfinite(moved).all()
    assert moved[0] <= 1.0 - DECAY + 1e-6


def test_the_chance_against_outside_is_that_of_the_softmax_with_another_level():
    z, none, outside = np.array([1.0, 0.5, -2.0]), 0.2, 1.3
    chance = np.exp(z) / (np.exp(z).sum() + np.exp(none))
    expected = np.exp(z) / (np.exp(z).sum() + np.exp(outside))
    for k in range(3):
        assert against_outside(chance[k], z[k], none, outside) == pytest.approx(expected[k])
    assert against_outside(1e-40, -800.0, 0.0, 900.0) < 1e-20
