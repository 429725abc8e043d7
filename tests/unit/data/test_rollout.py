"""A rollout refuses arrays that do not agree, and says which."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.data.rollout import Rollout
from surefoot.errors import ShapeError

T, N = 3, 2


def parts(**changes) -> dict:
    numbers = {name: np.zeros((T, N), np.float32) for name in ("log_prob", "value", "next_value", "reward")}
    flags = {name: np.zeros((T, N), bool) for name in ("terminated", "truncated", "start", "valid")}
    rest = {
        "obs": {"obs": np.zeros((T, N, 4), np.float32)},
        "action": np.zeros((T, N), np.int64),
        "policy_version": np.zeros((T, N), np.int64),
    }
    return {**numbers, **flags, **rest, **changes}


def test_arrays_that_agree_are_a_rollout():
    rollout = Rollout(**parts(valid=np.array([[True, False], [True, True], [False, False]])))
    assert rollout.samples == 3


def test_an_episode_has_ended_for_whichever_reason():
    terminated, truncated = np.zeros((T, N), bool), np.zeros((T, N), bool)
    terminated[0, 0] = truncated[1, 1] = True
    ended = Rollout(**parts(terminated=terminated, truncated=truncated)).ended
    assert np.argwhere(ended).tolist() == [[0, 0], [1, 1]]


@pytest.mark.parametrize(
    "name", ["log_prob", "value", "next_value", "terminated", "truncated", "start", "valid", "policy_version"]
)
def test_an_array_of_another_shape_is_named_with_both_shapes(name):
    wrong = parts()[name][:2]
    with pytest.raises(ShapeError, match=rf"{name} is \[2, 2\] but reward is \[3, 2\]"):
        Rollout(**parts(**{name: wrong}))


@pytest.mark.parametrize("name", ["action", "action_mask", "ref_log_prob"])
def test_a_part_that_does_not_begin_with_time_and_streams_is_named(name):
    with pytest.raises(ShapeError, match=rf"{name} is \[2, 3, 5\]"):
        Rollout(**parts(**{name: np.zeros((N, T, 5))}))


def test_an_observation_part_is_named_by_its_key():
    with pytest.raises(ShapeError, match=r"obs\['camera'\] is \[2, 3\]"):
        Rollout(**parts(obs={"camera": np.zeros((N, T))}))


def test_a_context_has_streams_but_no_time():
    Rollout(**parts(context={"h": np.zeros((N, 8))}))
    with pytest.raises(ShapeError, match=r"context\['h'\] is \[3, 8\]"):
        Rollout(**parts(context={"h": np.zeros((T, 8))}))


@pytest.mark.parametrize("name", ["terminated", "truncated", "start", "valid"])
def test_flags_are_bool(name):
    with pytest.raises(ShapeError, match=rf"{name} has dtype float32; flags are bool"):
        Rollout(**parts(**{name: np.zeros((T, N), np.float32)}))


def test_a_rollout_without_streams_is_refused():
    with pytest.raises(ShapeError, match=r"reward is \[3\]; a rollout is time-major"):
        Rollout(**parts(reward=np.zeros(3)))
