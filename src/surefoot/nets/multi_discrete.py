"""Several choices at once, independent given the observation: their distribution and their head.

And the temperature of heads that choose: above 1 the policy tries more, below 1 it keeps to what it prefers.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import torch
from torch import Tensor

from surefoot.data.spaces import MultiDiscrete
from surefoot.errors import ConfigError
from surefoot.nets.distributions import Categorical, mask_logits
from surefoot.nets.heads import DiscreteHead, Head
from surefoot.nets.policy import Policy


class MultiCategorical:
    """Several choices at once, independent given the observation: log-probs and entropies add up."""

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
    """Their sum; torch's own sum over a list starts from the int 0."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


class MultiDiscreteHead(Head):
    """Several choices at once; the mask has all their choices side by side."""

    def __init__(self, space: MultiDiscrete) -> None:
        super().__init__()
        self.nvec, self.outputs = space.nvec, sum(space.nvec)
        self.temperature = 1.0

    def distribution(self, raw: Tensor, features: Tensor, mask: Tensor | None) -> MultiCategorical:
        raw = raw if self.temperature == 1.0 else raw / self.temperature
        return MultiCategorical(raw if mask is None else mask_logits(raw, mask), self.nvec)

    def choices(self) -> tuple[int, ...]:
        return self.nvec


@contextmanager
def at_temperature(policy: Policy, temperature: float) -> Generator[None]:
    """The policy with this temperature until the block ends; a rollout must be learned from at the one it was made at.

    Outside, a policy always has temperature 1. The likeliest action is the same at any.
    """
    heads = [] if temperature == 1.0 else discrete_heads(policy)
    for head in heads:
        head.temperature = temperature
    try:
        yield
    finally:
        for head in heads:
            head.temperature = 1.0


def discrete_heads(policy: Policy) -> list[DiscreteHead | MultiDiscreteHead]:
    """The heads that have a temperature; ConfigError if there are none."""
    heads = [module for module in policy.modules() if isinstance(module, DiscreteHead | MultiDiscreteHead)]
    if not heads:
        raise ConfigError(
            "temperature is set but no action of this policy is a choice; leave it 1: what makes real-valued actions try "
            "more is log_std_init and ent_coef"
        )
    return heads
