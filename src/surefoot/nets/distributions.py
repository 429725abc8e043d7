"""Distributions over choices, and the protocol of all action distributions. No validation, no broadcasting: this is the hot path.

Each is built from a network's output. Actions are as stored in a rollout; the head converts them for the environment.
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
    """Return the logits with forbidden choices at half of the dtype's lowest value.

    Finite, not -inf: p · log p of a forbidden choice must be 0 in the entropy, not NaN. Half of it, so that a later
    subtraction does not overflow, in bf16 and fp16 either.
    """
    floor = max(torch.finfo(logits.dtype).min, torch.finfo(torch.float32).min)
    return logits.masked_fill(~mask, floor / 2)


def require_choice(mask: Tensor, choices: tuple[int, ...] = ()) -> None:
    """Raise `AllActionsMasked` if a row allows nothing: a softmax over forbidden options would silently pick one.

    `choices` is the number of options of each choice, if several lie side by side.
    """
    for part in mask.split(list(choices), dim=-1) if choices else (mask,):
        open_rows = part.any(dim=-1)
        if not bool(open_rows.all()):
            row = int((~open_rows).nonzero()[0, 0])
            raise AllActionsMasked(f"row {row} of the action mask allows nothing; at least one action must be True")


class Categorical:
    """One of K choices; logits [B, K], forbidden ones already masked."""

    __slots__ = ("log_probs",)

    def __init__(self, logits: Tensor) -> None:
        # Normalised in float32 also if the network runs in half precision (P17).
        self.log_probs = F.log_softmax(logits, dim=-1, dtype=torch.float32)

    def sample(self, generator: torch.Generator) -> Tensor:
        # The exponential race: argmin Eₖ/pₖ is distributed as p, in two kernels and without normalising again.
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


class MultiCategorical:
    """Several choices, independent given the observation: log-probs and entropies add up."""

    __slots__ = ("parts",)

    def __init__(self, logits: Tensor, nvec: tuple[int, ...]) -> None:
        self.parts = [Categorical(part) for part in logits.split(list(nvec), dim=-1)]

    def sample(self, generator: torch.Generator) -> Tensor:
        return torch.stack([part.sample(generator) for part in self.parts], dim=-1)

    def mode(self) -> Tensor:
        return torch.stack([part.mode() for part in self.parts], dim=-1)

    def log_prob(self, action: Tensor) -> Tensor:
        return sum_of([part.log_prob(a) for part, a in zip(self.parts, action.unbind(-1), strict=True)])

    def entropy(self) -> Tensor:
        return sum_of([part.entropy() for part in self.parts])

    def params(self) -> dict[str, Tensor]:
        return {f"probs_{k}": part.log_probs.exp() for k, part in enumerate(self.parts)}


def sum_of(parts: list[Tensor]) -> Tensor:
    """Return the sum; Python's `sum` would start from the int 0 and cost one more addition."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
