"""Elo and Wilson against numbers from elsewhere."""

from __future__ import annotations

import math

import pytest

from surefoot.train.algorithms.ratings import after_game, expected, gap, wilson


def test_equals_expect_a_half_and_400_points_are_ten_to_one():
    assert expected(1000, 1000) == 0.5
    assert expected(1400, 1000) == pytest.approx(10 / 11)
    assert expected(1000, 1400) == pytest.approx(1 / 11)


def test_a_game_moves_both_by_what_was_not_expected():
    assert after_game(1000, 1000, 1.0, 32) == (1016, 984)
    assert after_game(1000, 1000, 0.5, 32) == (1000, 1000)
    one, two = after_game(1000, 1400, 0.5, 11)  # the weaker one draws: 11 · (1/2 - 1/11) = 4.5
    assert (one, two) == (pytest.approx(1004.5), pytest.approx(1395.5))


def test_the_gap_of_a_score_is_the_inverse_of_what_is_expected():
    assert gap(10 / 11) == pytest.approx(400)
    assert gap(0.5) == 0.0
    assert (gap(0.0), gap(1.0)) == (-math.inf, math.inf)


def test_wilsons_interval_is_the_textbooks():
    # Wilson 1927, as in Agresti & Coull: 8 of 10 at 95 % give 0.490 to 0.943.
    assert wilson(0.8, 10) == (pytest.approx(0.490, abs=5e-4), pytest.approx(0.943, abs=5e-4))
    assert wilson(0.5, 0) == (0.0, 1.0)
