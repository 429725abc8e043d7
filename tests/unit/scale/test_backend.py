"""Shares, joined pieces and placements."""

from __future__ import annotations

import numpy as np
import pytest
from scale_backends import InProcess, a_spec, weights_of

from surefoot.errors import ConfigError
from surefoot.scale.backend import BackendSpec, join, shares


def test_the_sum_of_the_shares_is_the_number_of_streams():
    assert shares(7, 3) == [3, 2, 2]
    with pytest.raises(ConfigError, match="each needs at least one"):
        shares(2, 3)
    with pytest.raises(ConfigError, match="at least 1"):
        shares(2, 0)


def test_joined_streams_are_in_the_order_of_the_workers():
    spec = a_spec()
    backend = InProcess(spec, 2)
    backend.publish(weights_of(spec), 3)
    backend.ask()
    whole = join(backend.pieces)
    assert whole.reward.shape == (16, 5)
    assert np.array_equal(whole.obs["obs"][:, 3:], backend.pieces[1].rollout.obs["obs"])
    assert (whole.policy_version == 3).all()


@pytest.mark.parametrize("text", ["local", "local:0", "ray:x", "local:2@here", "dask:2", "local:-1", ""])
def test_an_invalid_placement_is_refused(text: str):
    with pytest.raises(ConfigError, match="rollouts is"):
        BackendSpec.parse(text)


def test_a_placement_is_parsed():
    assert BackendSpec.parse("local:2") == BackendSpec("local", 2)
    assert BackendSpec.parse("ray:8@10.0.0.1:6379").address == "10.0.0.1:6379"
