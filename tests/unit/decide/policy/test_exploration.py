"""Tests of `surefoot.decide.policy.exploration`."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.decide.policy.exploration import spread


def test_the_floor_leaves_the_likeliest_even_if_all_are_below_it():
    probabilities, plausible = spread(np.zeros(100), 0.5)
    assert probabilities.sum() == pytest.approx(1.0)
    assert plausible.all()
