"""From a rollout to the batch the loss sees; streams are cut into shorter columns where the config says so."""

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
    """[T, N] steps with advantages and targets; `valid` says which of them count.

    A minibatch is a choice of columns. A memoryless policy's steps are laid out as [1, T·N], padding dropped, so that
    every step is a column of its own; a sequential policy keeps its N streams.
    """

    def load(array: np.ndarray) -> Tensor:
        """Cast once at this boundary: float64 becomes float32, everything else stays as it is."""
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        return torch.from_numpy(np.ascontiguousarray(array)).to(device)

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
    # Choices as int64, which is what torch gathers by; anything else as it is.
    integers = np.issubdtype(rollout.action.dtype, np.integer)
    action = rollout.action.astype(np.int64) if integers else rollout.action
    batch = Batch(
        obs={name: load(x) for name, x in rollout.obs.items()},
        action=load(action),
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
    if sequential:
        return batch
    # [T, N, …] as [1, T·N, …] without the steps that do not count.
    keep = None if batch.valid is None else batch.valid.flatten().nonzero().squeeze(-1)

    def row(x: Tensor, columns: int) -> Tensor:
        flat = x.flatten(0, 1)
        return (flat if keep is None else flat.index_select(0, keep)).unsqueeze(0)

    batch.valid = None
    return batch.each(row)


@runtime_checkable
class Remembers(Protocol):
    """A policy that can say what it carried into some step."""

    def remembered(self, batch: Batch, steps: Sequence[int]) -> list[dict[str, Tensor]]: ...


def pieces(batch: Batch, policy: object, config: PPOConfig) -> Batch:
    """The batch in columns as the config wants them; as it is for a policy without memory."""
    if config.sequence is None or batch.start is None:
        return batch
    if not isinstance(policy, Remembers):
        raise ConfigError(
            f"sequence is {config.sequence} but the policy has no remembered(batch, steps); leave sequence at none"
        )
    return cut(batch, policy, length=config.sequence, burn_in=config.burn_in)


def cut(batch: Batch, policy: Remembers, *, length: int, burn_in: int) -> Batch:
    """[T, B] as columns of `length` steps that count, each with `burn_in` steps before it that do not.

    A column begins with what the policy of now carries there. Every step counts in exactly one column; where T does
    not divide, the last columns overlap. The first column has no past to walk through, so it looks ahead instead.
    """
    steps = batch.advantage.shape[0]
    width = min(length + burn_in, steps)
    if width == steps:
        return batch
    begins = [min(max(0, first - burn_in), steps - width) for first in range(0, steps, length)]
    places = sorted(set(begins))
    carried = dict(zip(places, policy.remembered(batch, places), strict=True))
    device = batch.advantage.device
    at = torch.arange(width, device=device).unsqueeze(1) + torch.tensor(begins, device=device)  # [W, pieces]
    cut_up = batch.each(lambda x, columns: x[at].flatten(1, 2) if columns == 1 else x)
    own = at // length == torch.arange(len(begins), device=device)
    counts = own.unsqueeze(-1).expand(-1, -1, batch.columns).flatten(1, 2)
    cut_up.valid = counts if cut_up.valid is None else cut_up.valid & counts
    cut_up.context = {name: torch.cat([carried[begin][name] for begin in begins]) for name in carried[0]}
    return cut_up
