"""From features to a distribution over actions, and from a chosen action to what the world takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
from torch import Tensor, nn

from surefoot.data.spaces import Discrete
from surefoot.nets.distributions import Categorical, Distribution, mask_logits

if TYPE_CHECKING:
    from surefoot.nets.continuous_heads import StateDependentHead


class Head(Protocol):
    """The part of a policy that knows the action space."""

    outputs: int
    """How many numbers the actor's last layer must give."""

    def distribution(self, raw: Tensor, features: Tensor, mask: Tensor | None) -> Distribution: ...

    def env_action(self, action: np.ndarray) -> np.ndarray: ...

    def action_std(self) -> float | None: ...

    def choices(self) -> tuple[int, ...]: ...

    def noise(self) -> StateDependentHead | None:
        """The part whose exploration is a function of the state, if there is one."""
        ...


class DiscreteHead(nn.Module):
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

    def action_std(self) -> float | None:
        return None

    def noise(self) -> StateDependentHead | None:
        return None
