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
