"""Bad numbers and masks are refused by name, step and stream."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from surefoot.data.rollout import Rollout
from surefoot.errors import AllActionsMasked, IllegalAction, NonFiniteValue
from surefoot.learn.prepare import to_batch
from surefoot.learn.refuse import refuse_bad_masks, refuse_bad_numbers

T, N = 3, 2


def a_rollout(**parts) -> Rollout:
    count = np.arange(T * N, dtype=np.float32).reshape(T, N)
    no = np.zeros((T, N), bool)
    made = {
        "obs": {"obs": np.stack([count, -count], axis=-1)},
        "action": np.zeros((T, N), np.int64),
        "log_prob": -count,
        "value": count / 10,
        "next_value": np.zeros((T, N), np.float32),
        "reward": count,
        "terminated": ~no,
        "truncated": no,
        "start": ~no,
        "valid": ~no,
        "policy_version": np.zeros((T, N), np.int64),
    }
    return Rollout(**{**made, **parts})


def prepared(rollout: Rollout, *, sequential: bool = False, valid: np.ndarray | None = None):
    valid = rollout.valid if valid is None else valid
    return to_batch(rollout, valid, gamma=0.9, lam=0.8, sequential=sequential, device=torch.device("cpu"))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", [(0, 0), (1, 1), (T - 1, N - 1)])
@pytest.mark.parametrize("name", ["reward", "value", "log_prob", "next_value", "obs"])
def test_a_bad_number_is_refused_by_tensor_step_and_stream(name, where, bad):
    rollout = a_rollout(terminated=np.zeros((T, N), bool))
    array = rollout.obs["obs"] if name == "obs" else getattr(rollout, name)
    array[where] = bad
    with pytest.raises(NonFiniteValue, match=rf"{name}.* at step {where[0]} of stream {where[1]} \(1 such"):
        refuse_bad_numbers(rollout, rollout.valid)


def test_a_bad_action_is_refused():
    rollout = a_rollout(action=np.full((T, N, 2), np.nan, np.float32))
    with pytest.raises(NonFiniteValue, match=r"action .*\(6 such"):
        refuse_bad_numbers(rollout, rollout.valid)


@pytest.mark.parametrize("name", ["obs", "reward"])
def test_a_number_too_large_for_float32_is_refused_before_it_becomes_infinite(name):
    huge = np.full((T, N, 2), 1.0)
    huge[1, 0] = 1e39
    rollout = a_rollout(obs={"obs": huge}) if name == "obs" else a_rollout(reward=huge[..., 0])
    with pytest.raises(NonFiniteValue, match=rf"{name}.* at step 1 of stream 0"):
        refuse_bad_numbers(rollout, rollout.valid)


def test_a_subnormal_number_is_a_number():
    rollout = a_rollout(obs={"obs": np.full((T, N, 2), 1e-42, np.float32)})
    refuse_bad_numbers(rollout, rollout.valid)


def test_what_is_not_read_may_be_anything():
    rollout = a_rollout()
    rollout.next_value[:] = np.nan  # every step terminates
    rollout.reward[2, 1] = np.nan
    valid = rollout.valid.copy()
    valid[2, 1] = False
    refuse_bad_numbers(rollout, valid)
    assert torch.isfinite(prepared(rollout, valid=valid).advantage).all()


def masks(**cells: bool) -> np.ndarray:
    mask = np.ones((T, N, 3), bool)
    for cell, allowed in cells.items():
        mask[tuple(int(i) for i in cell[1:].split("_"))] = allowed
    return mask


def test_a_mask_that_allows_nothing_is_refused_by_step_and_stream():
    mask = masks(c1_0_0=False, c1_0_1=False, c1_0_2=False)
    with pytest.raises(AllActionsMasked, match="step 1 of stream 0"):
        refuse_bad_masks(mask, a_rollout().action, np.ones((T, N), bool), (3,))


def test_an_action_that_its_mask_forbids_is_refused_by_step_and_stream():
    with pytest.raises(IllegalAction, match="action 0 at step 2 of stream 1"):
        refuse_bad_masks(masks(c2_1_0=False), a_rollout().action, np.ones((T, N), bool), (3,))


def test_masks_of_steps_that_do_not_count_are_not_looked_at():
    valid = np.ones((T, N), bool)
    valid[2, 1] = valid[1, 0] = False
    mask = masks(c2_1_0=False, c1_0_0=False, c1_0_1=False, c1_0_2=False)
    refuse_bad_masks(mask, a_rollout().action, valid, (3,))
