"""Tests of `surefoot.decide.core.record`."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.decide.core.record import DecisionRecord

from .store_cases import agent


@pytest.mark.parametrize("chooser", ["ppo", "residual", "lints", "nearest"])
def test_a_record_comes_back_with_every_digit_and_dtype(encoder, chooser: str):
    record = agent(encoder, chooser=chooser).choose("will it rain")
    header, raw = record.pack()
    again = DecisionRecord.unpack(header, raw, id=record.id)
    assert again.to_json()["x"] == record.to_json()["x"]
    for name in ("probabilities", "worth", "prior", "learned", "base", "plausible"):
        before, after = getattr(record.choice, name), getattr(again.choice, name)
        assert before.dtype == after.dtype
        assert np.array_equal(before, after, equal_nan=before.dtype.kind == "f")
    listed = DecisionRecord.from_json(record.to_json(), id=record.id)
    assert repr(listed.to_json()) == repr(record.to_json())  # NaN is not equal to itself
