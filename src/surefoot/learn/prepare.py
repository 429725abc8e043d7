"""From a rollout to the batch the loss sees, with every bad number refused by name on the way."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from surefoot.core.advantage import gae
from surefoot.core.batch import Batch
from surefoot.data.rollout import Rollout


def to_batch(
    rollout: Rollout, valid: np.ndarray, *, gamma: float, lam: float, sequential: bool, device: torch.device
) -> Batch:
    """[T, N] steps with advantages and targets; `valid` says which of them count.

    A minibatch is a choice of columns. A memoryless policy's steps are laid out as [1, T·N], padding dropped, so that
    every step is a column of its own; a sequential policy keeps its N streams.
    """
    load = _Loader(device)
    count = load(valid)
    value, reward = load(rollout.value), load(rollout.reward)
    advantage = gae(
        reward,
        value,
        load(rollout.next_value),
        load(rollout.terminated),
        load(rollout.ended),
        None if valid.all() else count,
        gamma=gamma,
        lam=lam,
    )
    batch = Batch(
        obs={name: load(x) for name, x in rollout.obs.items()},
        action=load(_action(rollout.action)),
        log_prob=load(rollout.log_prob),
        value=value,
        advantage=advantage,
        target=advantage + value,
        valid=None if valid.all() else count,
        action_mask=None if rollout.action_mask is None else load(rollout.action_mask),
        ref_log_prob=None if rollout.ref_log_prob is None else load(rollout.ref_log_prob),
        start=load(rollout.start) if sequential else None,
        context={name: load(x) for name, x in rollout.context.items()} if sequential else {},
    )
    return batch if sequential else _one_row(batch)


def _one_row(batch: Batch) -> Batch:
    """[T, N, …] as [1, T·N, …] without the steps that do not count."""
    keep = None if batch.valid is None else batch.valid.flatten().nonzero().squeeze(-1)

    def row(x: Tensor) -> Tensor:
        flat = x.flatten(0, 1)
        return (flat if keep is None else flat.index_select(0, keep)).unsqueeze(0)

    return Batch(
        obs={name: row(x) for name, x in batch.obs.items()},
        action=row(batch.action),
        log_prob=row(batch.log_prob),
        value=row(batch.value),
        advantage=row(batch.advantage),
        target=row(batch.target),
        action_mask=None if batch.action_mask is None else row(batch.action_mask),
        ref_log_prob=None if batch.ref_log_prob is None else row(batch.ref_log_prob),
    )


def _action(array: np.ndarray) -> np.ndarray:
    """Choices as int64, which is what torch gathers by; anything else as it is."""
    return array.astype(np.int64) if np.issubdtype(array.dtype, np.integer) else array


class _Loader:
    """Numpy to tensor, cast once at this boundary: float64 becomes float32, everything else stays as it is."""

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def __call__(self, array: np.ndarray) -> Tensor:
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)
