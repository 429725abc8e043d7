"""Distributions over actions, written out: no validation, no broadcasting, nothing that costs on the hot path.

Each is made from a network's output, and says `sample`, `mode`, `log_prob`, `entropy` and its `params`.
Actions are as stored in a rollout; what the world gets is the head's business.
"""

from __future__ import annotations

from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from surefoot.errors import AllActionsMasked


class Distribution(Protocol):
    """One distribution per row."""

    def sample(self, generator: torch.Generator) -> Tensor: ...

    def mode(self) -> Tensor: ...

    def log_prob(self, action: Tensor) -> Tensor: ...

    def entropy(self) -> Tensor: ...

    def params(self) -> dict[str, Tensor]: ...


def mask_logits(logits: Tensor, mask: Tensor) -> Tensor:
    """Logits with forbidden choices at the dtype's floor.

    Finite, not -inf: the entropy's p · log p of a forbidden choice must be 0, not NaN. The floor is the dtype's own,
    halved, so that bf16 and fp16 do not overflow and a later subtraction stays finite.
    """
    floor = max(torch.finfo(logits.dtype).min, torch.finfo(torch.float32).min)
    return logits.masked_fill(~mask, floor / 2)


def require_choice(mask: Tensor, choices: tuple[int, ...] = ()) -> None:
    """Raise if some row leaves a choice with nothing: a softmax over forbidden options would quietly pick one of them.

    `choices` says how many options each choice has, if there are several side by side.
    """
    for part in mask.split(list(choices), dim=-1) if choices else (mask,):
        open_rows = part.any(dim=-1)
        if not bool(open_rows.all()):
            row = int((~open_rows).nonzero()[0, 0])
            raise AllActionsMasked(f"row {row} of the action mask allows nothing; at least one action must be True")


class Categorical:
    """One of K choices; rows [B, K] of logits, forbidden ones already masked."""

    __slots__ = ("log_probs",)

    def __init__(self, logits: Tensor) -> None:
        # Normalised in float32 whatever the network runs in (P17).
        self.log_probs = F.log_softmax(logits, dim=-1, dtype=torch.float32)

    def sample(self, generator: torch.Generator) -> Tensor:
        # The race of exponentials: argmin Eₖ/pₖ is distributed as p, in two kernels and without normalising again.
        race = torch.empty_like(self.log_probs).exponential_(generator=generator)
        return (self.log_probs - race.log_()).argmax(dim=-1)

    def mode(self) -> Tensor:
        return self.log_probs.argmax(dim=-1)

    def log_prob(self, action: Tensor) -> Tensor:
        return self.log_probs.gather(-1, action.unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> Tensor:
        return -(self.log_probs.exp() * self.log_probs).sum(dim=-1)

    def params(self) -> dict[str, Tensor]:
        return {"probs": self.log_probs.exp()}
