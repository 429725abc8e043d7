"""Cosines of an unknown encoder in a scale that is estimated from them."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.decide.encoders.observed import CosineScale, GivenVectors
from surefoot.errors import EncoderError


def test_cosines_of_any_scale_become_deviations():
    rng = np.random.default_rng(0)
    for mean, deviation in ((0.8, 0.02), (0.1, 0.15)):
        scale = CosineScale()
        for _ in range(200):
            scale((mean + deviation * rng.standard_normal(10)).astype(np.float32))
        scaled = scale(np.array([mean, mean + deviation], np.float32))
        assert scaled == pytest.approx([0.0, 1.0], abs=0.15)


def test_a_choice_without_a_description_is_at_the_mean():
    scale = CosineScale()
    scaled = scale(np.array([0.5, 0.0, 0.3], np.float32))
    assert scaled[1] == 0.0
    assert scaled[0] > scaled[2]


def test_the_estimate_settles_and_a_look_changes_nothing():
    scale, row = CosineScale(), np.array([0.1, 0.4], np.float32)
    scale(row, observe=False)
    assert scale.count == 0
    for _ in range(300):
        scale(row)
    assert scale.settled
    before = scale.state()
    scale(np.array([0.9, -0.9], np.float32))
    assert scale.state() == before


def test_vectors_are_taken_and_texts_are_not():
    encoder = GivenVectors(5, prior=0.5)
    assert encoder.likeness.relative
    assert encoder.likeness.sharpness == pytest.approx(0.5 * GivenVectors(5).likeness.sharpness)
    with pytest.raises(EncoderError, match="pass vectors"):
        encoder.encode(["hello"])
