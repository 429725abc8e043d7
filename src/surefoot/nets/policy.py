"""What the engine asks of a policy. Memory is passed in and out, never kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from surefoot._moved import warn_moved
from surefoot.core.batch import Batch, Evaluation
from surefoot.nets.distributions import Distribution


@dataclass(slots=True, kw_only=True)
class PolicyInput:
    """What N streams see at one moment."""

    obs: dict[str, Tensor]
    """{name: [N, …]}"""
    action_mask: Tensor | None = None
    start: Tensor | None = None
    """[N] bool: an episode begins here, so its memory must be cleared."""
    context: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    """{name: [N, …]}: what each stream remembers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyOutput:
    """A choice for each of N streams, with all that learning and looking will need."""

    action: Tensor
    """As chosen; `Policy.env_action` turns it into what the world takes."""
    value: Tensor
    log_prob: Tensor
    distribution: Distribution
    """What the action was drawn from."""
    context: dict[str, Tensor] = field(default_factory=dict[str, Tensor])

    @property
    def action_params(self) -> dict[str, Tensor]:
        """Parameters of the distribution, worked out when asked for: probabilities, or mean and std."""
        return self.distribution.params()


class Policy(Protocol):
    """Anything that can act, judge, and be asked again about what it did."""

    sequential: bool
    """True if `evaluate` needs whole streams in time order."""

    def act(self, inputs: PolicyInput, *, generator: torch.Generator, deterministic: bool = False) -> PolicyOutput:
        """Choose; every random number comes from `generator`."""
        ...

    def value(self, inputs: PolicyInput) -> Tensor:
        """[N]: what the critic expects from here on."""
        ...

    def evaluate(self, batch: Batch) -> Evaluation:
        """Log-prob, entropy and value of stored steps under the weights of now, with gradients."""
        ...

    def initial_context(self, streams: int) -> dict[str, Tensor]:
        """What a stream remembers before its first step; {} for a policy without memory."""
        ...

    def renew_context(self, context: dict[str, Tensor]) -> dict[str, Tensor]:
        """What to carry into a new rollout: memory stays as it is, exploration noise is drawn anew."""
        ...

    def env_action(self, action: np.ndarray) -> np.ndarray:
        """[N, …] chosen actions as the world takes them: clipped, squashed, shifted."""
        ...

    def absorb(self, obs: dict[str, np.ndarray]) -> None:
        """Take raw observations ([M, …]) into the running statistics; called after an update, never during one."""
        ...

    def action_std(self) -> float | None:
        """Mean standard deviation of the actions if the policy has one, for the report."""
        ...

    def choices(self) -> tuple[int, ...]:
        """How many options each choice has, as masks lie side by side; () for continuous actions."""
        ...

    def describe(self) -> dict[str, Any]:
        """JSON from which the same architecture can be built again."""
        ...

    def parameters(self) -> Iterator[nn.Parameter]: ...

    def modules(self) -> Iterator[nn.Module]: ...

    def state_dict(self) -> dict[str, Tensor]: ...

    def load_state_dict(self, state_dict: dict[str, Tensor]) -> Any: ...

    def to(self, device: torch.device) -> Any: ...


def __getattr__(name: str) -> Any:
    if name == "Seen":
        warn_moved("surefoot.nets.policy.Seen", "PolicyInput")
        return PolicyInput
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
