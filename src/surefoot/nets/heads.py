"""From features to a distribution over actions, and from a chosen action to what the world takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor, nn

from surefoot.data.spaces import Discrete
from surefoot.nets.distributions import Categorical, mask_logits

if TYPE_CHECKING:
    from surefoot.nets.continuous_heads import StateDependentHead


class Head(nn.Module):
    """What the heads share: no choices, no noise of their own, and actions that reach the world as stored."""

    outputs: int
    """How many numbers per row the network must give."""

    def env_action(self, action: np.ndarray) -> np.ndarray:
        return action

    def choices(self) -> tuple[int, ...]:
        return ()

    def action_std(self) -> float | None:
        return None

    def noise(self) -> StateDependentHead | None:
        return None


class DiscreteHead(Head):
    """One of n; the world counts from `start`."""

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
