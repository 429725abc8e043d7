"""From rollout to batch: layout by hand, casts once, bad numbers refused by name."""

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


def test_a_memoryless_policys_steps_stand_in_one_row():
    batch = prepared(a_rollout())
    assert batch.obs["obs"].shape == (1, 6, 2)
    assert batch.obs["obs"][0, :, 0].tolist() == [0, 1, 2, 3, 4, 5]
    assert batch.columns == 6
    # Every step terminates: the advantage is reward - value, the target is the reward.
    assert torch.allclose(batch.advantage, torch.arange(6.0).unsqueeze(0) * 0.9)
    assert torch.allclose(batch.target, torch.arange(6.0).unsqueeze(0))
    assert batch.valid is None


def test_steps_that_do_not_count_are_left_out_of_the_row():
    valid = np.array([[True, False], [True, True], [False, True]])
    batch = prepared(a_rollout(), valid=valid)
    assert batch.obs["obs"][0, :, 0].tolist() == [0, 2, 3, 5]
    assert batch.log_prob[0].tolist() == [0, -2, -3, -5]


def test_a_sequential_policy_keeps_its_streams_and_is_told_what_counts():
    valid = np.array([[True, False], [True, True], [False, True]])
    rollout = a_rollout(context={"h": np.ones((N, 4), np.float32)})
    batch = prepared(rollout, sequential=True, valid=valid)
    assert batch.obs["obs"].shape == (T, N, 2)
    assert batch.valid is not None
    assert batch.valid.tolist() == valid.tolist()
    assert batch.context["h"].shape == (N, 4)


def test_targets_are_advantages_plus_values():
    rng = np.random.default_rng(0)
    rollout = a_rollout(
        value=rng.normal(size=(T, N)).astype(np.float32),
        next_value=rng.normal(size=(T, N)).astype(np.float32),
        terminated=np.zeros((T, N), bool),
    )
    batch = prepared(rollout)
    assert torch.allclose(batch.target - batch.value, batch.advantage, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int64, np.int32, np.uint8, np.bool_])
@pytest.mark.parametrize("layout", ["plain", "strided", "fortran"])
def test_any_number_in_any_layout_arrives_as_it_is(dtype, layout):
    plain = np.arange(T * N * 2).reshape(T, N, 2).astype(dtype)
    x = {
        "plain": plain,
        "strided": np.repeat(plain, 2, axis=1)[:, ::2],
        "fortran": np.asfortranarray(plain),
    }[layout]
    batch = prepared(a_rollout(obs={"obs": x}))
    assert batch.obs["obs"].dtype == (torch.float32 if dtype == np.float64 else torch.from_numpy(plain).dtype)
    assert np.array_equal(batch.obs["obs"].numpy().reshape(plain.shape), plain)


def test_bytes_stay_bytes_until_the_policy_reads_them():
    batch = prepared(a_rollout(obs={"obs": np.full((T, N, 4, 4), 200, np.uint8)}))
    assert batch.obs["obs"].dtype == torch.uint8
    assert batch.obs["obs"].shape == (1, 6, 4, 4)


def test_an_observation_of_a_single_number_needs_no_axis():
    assert prepared(a_rollout(obs={"obs": np.ones((T, N))})).obs["obs"].shape == (1, 6)


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
