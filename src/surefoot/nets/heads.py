"""Heads: from features to a distribution over actions, and from an action to what the environment receives."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor, nn

from surefoot.data.spaces import Discrete, MultiDiscrete
from surefoot.errors import ConfigError
from surefoot.nets.distributions import Categorical, MultiCategorical, mask_logits
from surefoot.nets.policy import Policy

if TYPE_CHECKING:
    from surefoot.nets.continuous_heads import StateDependentHead


class Head(nn.Module):
    """Base of the heads: no choices, no noise, and actions that reach the environment as stored."""

    outputs: int
    """The numbers per row that the network must produce."""

    def env_action(self, action: np.ndarray) -> np.ndarray:
        return action

    def choices(self) -> tuple[int, ...]:
        return ()

    def action_std(self) -> float | None:
        return None

    def noise(self) -> StateDependentHead | None:
        return None


class DiscreteHead(Head):
    """One of n choices; the environment counts from `start`."""

    def __init__(self, space: Discrete) -> None:
        super().__init__()
        self.outputs, self.start = space.n, space.start
        self.temperature = 1.0

    def distribution(self, raw: Tensor, features: Tensor, mask: Tensor | None) -> Categorical:
        raw = raw if self.temperature == 1.0 else raw / self.temperature
        return Categorical(raw if mask is None else mask_logits(raw, mask))

    def env_action(self, action: np.ndarray) -> np.ndarray:
        return action if self.start == 0 else action + self.start

    def choices(self) -> tuple[int, ...]:
        return (self.outputs,)


class MultiDiscreteHead(Head):
    """Several choices; the mask has the options of all of them side by side."""

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
    """Set the policy's temperature inside the `with` block: above 1 it explores more, below 1 less.

    A rollout must be learned from at the temperature it was collected at. Outside of the block the temperature is 1.
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
    """Return the heads that have a temperature; raise `ConfigError` if there are none."""
    heads = [module for module in policy.modules() if isinstance(module, DiscreteHead | MultiDiscreteHead)]
    if not heads:
        raise ConfigError(
            "temperature is set but this policy has no discrete actions; leave it 1. Continuous actions explore more with a "
            "larger log_std_init or ent_coef"
        )
    return heads
