"""Tests of `surefoot.decide.policy.calibration`."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.decide.policy.calibration import Calibration


def test_a_calibration_curve_never_falls():
    made = Calibration()
    for said, seen in ((0.1, 1.0), (0.5, 0.0), (0.9, 1.0)) * 50:
        made.add(said, seen)
    curve = made.curve()
    assert (np.diff(curve[:, 1]) >= -1e-12).all()
    assert made(0.3) == pytest.approx(0.5, abs=0.1), "pooled: .1 said too little and .5 too much"


def test_lost_is_the_share_of_successes_below_a_score_and_weights_count():
    made = Calibration()
    assert made.lost(0.9) == 1.0, "nothing is known"
    for _ in range(90):
        made.add(0.9, 1.0)
    made.add(0.01, 1.0, weight=10.0)
    made.add(0.01, 0.0)
    assert made.lost(0.0001) == 0.0
    assert made.lost(0.5) == pytest.approx(0.1)
    assert made.lost(0.9999) == pytest.approx(1.0)


def test_a_saved_calibration_continues_the_same_and_one_of_ten_bins_starts_anew():
    made, other = Calibration(), Calibration()
    for i in range(101):
        made.add(i / 101, float(i % 3 == 0))
    other.set_state(made.state())
    for calibration in (made, other):
        calibration.add(0.3, 1.0)
    assert other(0.35) == made(0.35)
    assert other.outcomes == 102
    other.set_state({"count": [1.0] * 10, "said": [1.0] * 10, "seen": [1.0] * 10})
    assert other.outcomes == 102
