"""From rollout to batch: layout by hand, casts once."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from surefoot.data.rollout import Rollout
from surefoot.learn.prepare import to_batch

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
