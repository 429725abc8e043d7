from __future__ import annotations

import math

import numpy as np
import pytest

from surefoot.errors import ConfigError
from surefoot.train.diagnose.statistics import distinct_rows, iqm, iqms, median, summarize


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([7.0], 7.0),
        ([1, 2], 1.5),
        ([4, 1, 3, 2], 2.5),  # the middle two
        ([1, 2, 3, 4, 5, 6, 7, 8], 4.5),
        ([0, 10, 20, 30, 1000], (0.75 * 10 + 20 + 0.75 * 30) / 2.5),  # a quarter is 1.25 scores
    ],
)
def test_the_interquartile_mean_is_the_mean_of_the_middle_half(scores, expected):
    assert iqm(scores) == pytest.approx(expected)


def test_one_bad_seed_of_five_hardly_moves_it():
    assert iqm([500, 500, 500, 500, 9]) == 500
    assert iqm([500, 500, 500, 500, -math.inf]) == 500
    assert iqm([-math.inf] * 4) == -math.inf


def test_every_row_has_the_mean_that_it_has_alone():
    rows = np.random.default_rng(0).normal(size=(50, 7))
    rows[3, 0], rows[4, :] = np.inf, -np.inf
    assert iqms(rows).tolist() == [iqm(row) for row in rows]


def test_no_score_has_no_mean():
    with pytest.raises(ConfigError, match="at least one"):
        iqm([])


def test_the_interval_holds_the_mean_and_shrinks_with_the_spread():
    wide, narrow = summarize([10, 20, 30, 40, 50]), summarize([29, 30, 30, 30, 31])
    assert wide.low <= wide.iqm <= wide.high
    assert wide.high - wide.low > 10 * (narrow.high - narrow.low)
    assert (wide.minimum, wide.maximum, wide.mean, wide.count) == (10, 50, 30, 5)


def test_the_same_scores_give_the_same_interval():
    assert summarize([1, 5, 2, 8]) == summarize([1, 5, 2, 8])


def test_equal_seeds_leave_no_interval():
    told = summarize([500.0] * 5)
    assert (told.low, told.iqm, told.high) == (500, 500, 500)
    assert str(told).startswith("IQM 500.0  95% [500.0, 500.0]")


def test_distinct_rows_and_the_median_are_numpys():
    rng = np.random.default_rng(5)
    rows = rng.integers(-1, 2, (60, 2)) * rng.choice([-0.5, 0.5], (60, 1))
    assert len(set(np.signbit(rows[rows == 0.0]).tolist())) == 2, "both zeros are there"
    assert distinct_rows(rows) == len(np.unique(rows, axis=0))
    for n in (1, 2, 7, 8):
        numbers = rng.normal(size=n)
        assert median(numbers) == np.median(numbers)
