"""From a rollout to the batch that the loss reads; streams can be cut into shorter columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from surefoot.core.advantage import gae
from surefoot.core.batch import Batch
from surefoot.data.rollout import Rollout
from surefoot.errors import ConfigError
from surefoot.learn.config import PPOConfig


def to_batch(
    rollout: Rollout, valid: np.ndarray, *, gamma: float, lam: float, sequential: bool, device: torch.device
) -> Batch:
    """Return the steps [T, N] with advantages and targets; `valid` [T, N] masks the steps to learn from.

    A minibatch is a choice of columns. For a policy without memory the valid steps become [1, T·N], so that every step is
    a column; a sequential policy keeps its N streams.
    """

    def load(array: np.ndarray) -> Tensor:
        # The only cast: float64 becomes float32, every other dtype is unchanged.
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        return torch.from_numpy(np.ascontiguousarray(array)).to(device)

    mask = None if valid.all() else load(valid)
    value, reward = load(rollout.value), load(rollout.reward)
    terminated, ended = load(rollout.terminated), load(rollout.ended)
    advantage = gae(reward, value, load(rollout.next_value), terminated, ended, mask, gamma=gamma, lam=lam)
    # torch gathers by int64.
    integers = np.issubdtype(rollout.action.dtype, np.integer)
    action = rollout.action.astype(np.int64) if integers else rollout.action
    batch = Batch(
        obs={name: load(x) for name, x in rollout.obs.items()},
        action=load(action),
        log_prob=load(rollout.log_prob),
        value=value,
        advantage=advantage,
        target=advantage + value,
        valid=mask,
        action_mask=None if rollout.action_mask is None else load(rollout.action_mask),
        ref_log_prob=None if rollout.ref_log_prob is None else load(rollout.ref_log_prob),
        start=load(rollout.start) if sequential else None,
        context={name: load(x) for name, x in rollout.context.items()} if sequential else {},
    )
    if sequential:
        return batch
    keep = None if mask is None else mask.flatten().nonzero().squeeze(-1)

    def row(x: Tensor, columns: int) -> Tensor:
        flat = x.flatten(0, 1)
        return (flat if keep is None else flat.index_select(0, keep)).unsqueeze(0)

    batch.valid = None
    return batch.each(row)


@runtime_checkable
class Remembers(Protocol):
    """A policy that can return the memory it carries into given steps."""

    def remembered(self, batch: Batch, steps: Sequence[int]) -> list[dict[str, Tensor]]: ...


def pieces(batch: Batch, policy: object, config: PPOConfig) -> Batch:
    """Return the batch in columns of `config.sequence` steps; unchanged if that is None or the policy has no memory."""
    if config.sequence is None or batch.start is None:
        return batch
    if not isinstance(policy, Remembers):
        raise ConfigError(
            f"sequence is {config.sequence} but the policy has no method remembered(batch, steps); set sequence to none"
        )
    return cut(batch, policy, length=config.sequence, burn_in=config.burn_in)


def cut(batch: Batch, policy: Remembers, *, length: int, burn_in: int) -> Batch:
    """Return [T, B] as columns of `length` valid steps, each preceded by `burn_in` steps that are not learned from.

    A column begins with the memory that the current weights carry there. Every step is valid in exactly one column; if T
    is not a multiple of `length`, the last columns overlap. The first column has no past, so its extra steps follow it.
    """
    steps = batch.advantage.shape[0]
    width = min(length + burn_in, steps)
    if width == steps:
        return batch
    begins = [min(max(0, first - burn_in), steps - width) for first in range(0, steps, length)]
    unique = sorted(set(begins))
    memory = dict(zip(unique, policy.remembered(batch, unique), strict=True))
    device = batch.advantage.device
    index = torch.arange(width, device=device).unsqueeze(1) + torch.tensor(begins, device=device)  # [W, pieces]
    columns = batch.each(lambda x, columns: x[index].flatten(1, 2) if columns == 1 else x)
    # Piece k owns the steps k·length … (k+1)·length - 1; its others are burn-in or belong to a neighbour.
    owned = index // length == torch.arange(len(begins), device=device)
    owned = owned.unsqueeze(-1).expand(-1, -1, batch.columns).flatten(1, 2)
    columns.valid = owned if columns.valid is None else columns.valid & owned
    columns.context = {name: torch.cat([memory[begin][name] for begin in begins]) for name in memory[0]}
    return columns
