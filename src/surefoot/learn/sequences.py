"""Long streams cut into shorter columns, so that a policy with memory has more than N of them to choose from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from surefoot.core.batch import Batch
from surefoot.errors import ConfigError
from surefoot.learn.config import PPOConfig


@runtime_checkable
class Remembers(Protocol):
    """A policy that can say what it carried into some step."""

    def remembered(self, batch: Batch, at: Sequence[int]) -> list[dict[str, Tensor]]: ...


def pieces(batch: Batch, policy: object, config: PPOConfig) -> Batch:
    """The batch in columns as the config wants them; as it is for a policy without memory."""
    if config.sequence is None or batch.start is None:
        return batch
    if not isinstance(policy, Remembers):
        raise ConfigError(
            f"sequence is {config.sequence} but the policy has no remembered(batch, at); leave sequence at none"
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
