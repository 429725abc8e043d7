"""Regressions of the environment's tests, against numpy's least squares."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.train.diagnose.step_features import explained, fitted, gained

RNG = np.random.default_rng(0)
X = np.concatenate([np.ones((400, 1)), RNG.normal(size=(400, 3))], axis=1)
EXTRA = RNG.normal(size=(400, 1))
Y = X @ np.array([[1.0], [2.0], [0.0], [-1.0]]) + 3.0 * EXTRA + 0.5 * RNG.normal(size=(400, 1))


def least_squares(features: np.ndarray) -> float:
    return float(np.linalg.lstsq(features, Y, rcond=None)[1][0])


def test_coefficients_are_those_of_least_squares():
    assert fitted(X, Y) == pytest.approx(np.linalg.lstsq(X, Y, rcond=None)[0], abs=1e-4)


def test_a_repeated_column_does_no_harm():
    twice = np.concatenate([X, X], axis=1)
    assert twice @ fitted(twice, Y) == pytest.approx(X @ np.linalg.lstsq(X, Y, rcond=None)[0], abs=1e-3)


def test_explained_is_the_adjusted_share_of_the_variance():
    total = float(((Y - Y.mean()) ** 2).sum())
    assert explained(X, Y) == pytest.approx(1.0 - (least_squares(X) / 396) / (total / 399), abs=1e-4)
    assert abs(explained(X, RNG.normal(size=(400, 1)))) < 0.05


def test_gained_is_the_share_of_the_rest_that_more_columns_explain():
    both = np.concatenate([X, EXTRA], axis=1)
    expected = 1.0 - (least_squares(both) / 395) / (least_squares(X) / 396)
    assert gained(X, EXTRA, Y) == pytest.approx(expected, abs=1e-4)
    assert gained(X, EXTRA, X[:, 1:2]) == 0.0
