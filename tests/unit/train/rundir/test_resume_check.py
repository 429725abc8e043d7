"""Fingerprints of a state, and runs that cannot be verified."""

import numpy as np
import pytest
import torch

from surefoot.errors import ConfigError
from surefoot.train.rundir.resume_check import fingerprint, verify_resume
from surefoot.train.rundir.rundir import RunDir

STATE = {"weights": np.arange(3.0), "step": 7, "names": ["a", "b"], "inner": {"x": torch.ones(2)}}


def test_equal_states_have_equal_fingerprints_whatever_the_order_of_their_keys() -> None:
    assert fingerprint(STATE) == fingerprint(dict(reversed(STATE.items())))
    assert fingerprint(STATE) == fingerprint({**STATE, "inner": {"x": np.ones(2, np.float32)}})


@pytest.mark.parametrize(
    "change",
    [
        {"weights": np.nextafter(np.arange(3.0), 9.0)},
        {"weights": np.arange(3.0, dtype=np.float32)},
        {"step": 8},
        {"names": ["ab"]},
        {"inner": {"y": torch.ones(2)}},
    ],
)
def test_one_bit_one_type_or_one_name_changes_it(change) -> None:
    assert fingerprint(STATE) != fingerprint({**STATE, **change})


def test_a_restart_needs_an_update_on_both_sides(tmp_path) -> None:
    with pytest.raises(ConfigError, match="at least 2"):
        verify_resume(RunDir(tmp_path), updates=1)
