"""Versions: the first is live, promotion moves a link, rollback goes back, and all of it is written down."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from surefoot.decide.promotion import AgreementRate, Versions
from surefoot.errors import CheckpointMissing, DecisionError


def parts(number: int) -> dict[str, dict[str, object]]:
    return {"weights": {"w": np.full(3, float(number), np.float32)}}


def test_the_first_version_is_live_and_a_promoted_one_takes_over(tmp_path: Path):
    versions = Versions(tmp_path / "v")
    assert versions.live is None
    with pytest.raises(CheckpointMissing, match="no version yet"):
        versions.load()
    versions.save(1, parts(1))
    versions.save(2, parts(2))
    assert versions.live == 1
    versions.promote(2, "better")
    assert versions.live == 2
    assert versions.load().parts["weights"]["w"].tolist() == [2.0, 2.0, 2.0]
    assert versions.numbers == [1, 2]


def test_rollback_goes_to_the_one_before_and_says_so(tmp_path: Path):
    versions = Versions(tmp_path)
    versions.save(1, parts(1))
    with pytest.raises(DecisionError, match="nothing to go back to"):
        versions.rollback()
    versions.save(2, parts(2))
    versions.promote(2, "better")
    assert versions.rollback("it was not") == 1
    assert [entry["what"] for entry in versions.history()] == ["promote", "promote", "rollback"]
    assert versions.history()[-1]["reason"] == "it was not"


def test_an_unknown_version_is_named(tmp_path: Path):
    versions = Versions(tmp_path)
    versions.save(1, parts(1))
    with pytest.raises(CheckpointMissing, match="no version 7"):
        versions.promote(7, "?")


def test_match_counts_agreement_over_a_window():
    match = AgreementRate(window=4)
    for own, done in (("a", "b"), ("a", "a"), ("a", "a"), ("b", "b"), ("b", "b")):
        match.add(own, done)
    assert match.rate == 1.0, "the first, a disagreement, is out of the window"
    assert len(match) == 4
