"""The policy protocol of the engine. Memory is passed in and out, never stored in the policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from surefoot._moved import warn_moved
from surefoot.core.batch import Batch, Evaluation
from surefoot.errors import CheckpointCorrupt, CheckpointIncompatible
from surefoot.nets.distributions import Distribution


@dataclass(slots=True, kw_only=True)
class PolicyInput:
    """The observations of N streams at one step."""

    obs: dict[str, Tensor]
    """{name: [N, …]}"""
    action_mask: Tensor | None = None
    start: Tensor | None = None
    """[N] bool: an episode begins here, so its memory must be cleared."""
    context: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    """{name: [N, …]}: the memory of each stream."""

    @classmethod
    def from_arrays(
        cls,
        obs: Mapping[str, np.ndarray],
        action_mask: np.ndarray | None = None,
        start: np.ndarray | None = None,
        context: dict[str, Tensor] | None = None,
        device: torch.device | str = "cpu",
    ) -> PolicyInput:
        """Return the input for arrays as a world gives them. On the CPU the tensors share their memory."""
        return cls(
            obs={name: torch.from_numpy(x).to(device) for name, x in obs.items()},
            action_mask=None if action_mask is None else torch.from_numpy(action_mask).to(device),
            start=None if start is None else torch.from_numpy(start).to(device),
            context=context or {},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyOutput:
    """An action for each of N streams, with all that learning and logging need."""

    action: Tensor
    """As sampled; `Policy.env_action` converts it for the environment."""
    value: Tensor
    log_prob: Tensor
    distribution: Distribution
    """The distribution that the action was drawn from."""
    context: dict[str, Tensor] = field(default_factory=dict[str, Tensor])

    @property
    def action_params(self) -> dict[str, Tensor]:
        """The parameters of the distribution, computed on access: probabilities, or mean and std."""
        return self.distribution.params()


class Policy(Protocol):
    """A policy that the engine can train: it acts, estimates values, and evaluates stored steps."""

    sequential: bool
    """True if `evaluate` needs whole streams in time order."""

    def act(self, inputs: PolicyInput, *, generator: torch.Generator, deterministic: bool = False) -> PolicyOutput:
        """Return actions; every random number comes from `generator`."""
        ...

    def value(self, inputs: PolicyInput) -> Tensor:
        """Return the expected returns, [N]."""
        ...

    def evaluate(self, batch: Batch) -> Evaluation:
        """Return log-prob, entropy and value of stored steps under the current weights, with gradients."""
        ...

    def initial_context(self, streams: int) -> dict[str, Tensor]:
        """Return the memory of streams before their first step; {} for a policy without memory."""
        ...

    def renew_context(self, context: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the context for a new rollout: memory is unchanged, exploration noise is drawn again."""
        ...

    def env_action(self, action: np.ndarray) -> np.ndarray:
        """Return [N, …] actions in the environment's form: clipped, squashed, shifted."""
        ...

    def absorb(self, obs: dict[str, np.ndarray]) -> None:
        """Add raw observations ([M, …]) to the running statistics; called after an update, never during one."""
        ...

    def action_std(self) -> float | None:
        """Return the mean standard deviation of the actions for the report, or None."""
        ...

    def choices(self) -> tuple[int, ...]:
        """Return the number of options of each choice, in the order of the mask; () for continuous actions."""
        ...

    def describe(self) -> dict[str, Any]:
        """Return JSON from which the same architecture can be built again."""
        ...

    def parameters(self) -> Iterator[nn.Parameter]: ...

    def modules(self) -> Iterator[nn.Module]: ...

    def state_dict(self) -> dict[str, Tensor]: ...

    def load_state_dict(self, state_dict: dict[str, Tensor]) -> Any: ...

    def to(self, device: torch.device) -> Any: ...


def load_weights(policy: Policy, weights: dict[str, Any]) -> None:
    """Load saved weights into a policy of the same architecture; raise `CheckpointIncompatible` with the first difference."""
    expected = policy.state_dict()
    loaded = {name: torch.as_tensor(np.array(x) if isinstance(x, np.ndarray) else x) for name, x in weights.items()}
    different = sorted(set(expected) ^ set(loaded)) or [n for n in expected if expected[n].shape != loaded[n].shape]
    if different:
        name = different[0]
        in_policy, in_file = (list(w[name].shape) if name in w else "absent" for w in (expected, loaded))
        raise CheckpointIncompatible(
            f"these weights belong to another policy: {name} is {in_file} in the checkpoint and {in_policy} in this policy; "
            "use the same env, net settings and surefoot version, or train a new policy"
        )
    for name, x in loaded.items():
        if expected[name].is_floating_point() and not x.is_floating_point():
            raise CheckpointIncompatible(
                f"{name} is {x.dtype} in the checkpoint; weights must be floating-point numbers"
            )
        if x.is_floating_point() and bool(x.isnan().any()):
            raise CheckpointCorrupt(f"{name} holds NaN in the checkpoint; resume from an earlier one")
    policy.load_state_dict(loaded)


def __getattr__(name: str) -> Any:
    if name == "Seen":
        warn_moved("surefoot.nets.policy.Seen", "PolicyInput")
        return PolicyInput
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
