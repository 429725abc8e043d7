"""Comparison of a model's answers with those of its policy."""

import numpy as np
import pytest

from surefoot.data.spaces import Box
from surefoot.train.interop.onnx_check import STREAMS, TOLERANCE, Verification, _compare, _draw  # pyright: ignore[reportPrivateUsage]

PROBS = np.array([[0.9, 0.1], [0.5, 0.5]], np.float32)


def test_differences_are_relative_for_large_numbers_and_absolute_for_small() -> None:
    proof = Verification()
    answers = {"action": np.zeros((2, 1)), "value": np.array([100.1, 0.1])}
    _compare(proof, answers, {"value": np.array([100.0, 0.0])}, np.zeros((2, 1)), choices=0)
    assert proof.difference["value"] == pytest.approx(0.1)
    assert not proof.holds


def test_another_choice_counts_only_if_one_was_clearly_better() -> None:
    proof = Verification()
    answers = {"action": np.array([1, 1]), "probs": PROBS}
    _compare(proof, answers, {"probs": PROBS}, np.array([0, 0]), choices=1)
    assert proof.wrong_choices == 1


def test_nan_never_holds() -> None:
    proof = Verification()
    _compare(
        proof, {"action": np.zeros((1, 0)), "v": np.array([np.nan])}, {"v": np.zeros(1)}, np.zeros((1, 0)), choices=0
    )
    assert proof.worst > TOLERANCE
    assert not proof.holds


def test_drawn_observations_are_within_the_bounds() -> None:
    rng = np.random.default_rng(0)
    drawn = _draw(Box((2,), (0.0, -np.inf), (1.0, 5.0)), rng, None)
    assert drawn.shape == (STREAMS, 2)
    assert ((drawn[:, 0] >= 0.0) & (drawn[:, 0] <= 1.0) & (drawn[:, 1] <= 5.0)).all()
    assert _draw(Box((3,), 0.0, 255.0, "uint8"), rng, None).dtype == np.uint8
