"""Networks: from the dict of observations to the head's input, a value, and the actor's features; standard and custom ones."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from surefoot.data.spaces import ObservationSpace
from surefoot.errors import PolicyError
from surefoot.nets.config import NetConfig
from surefoot.nets.recurrent import Memory
from surefoot.nets.torsos import layer, mlp


@dataclass(slots=True)
class Walk:
    """How rows lie in time for a policy with memory, and the state of its streams; `carry` is replaced, never modified."""

    shape: tuple[int, int]
    """[T, B]; there are T·B rows, time first."""
    start: Tensor | None
    """[T, B] bool: an episode begins here."""
    carry: dict[str, Tensor]
    """{name of a memory: [B, …]}"""


class Trunks(nn.Module):
    """A torso, an optional memory, then layers: one set for the actor and one for the critic (the same set if `shared`).

    The critic has a second torso if it gets more observation parts than the actor.
    """

    critic: nn.Sequential

    def __init__(
        self, torso: nn.Module, inputs: int, config: NetConfig, critic_torso: tuple[nn.Module, int] | None = None
    ) -> None:
        super().__init__()
        ortho = config.ortho_init
        critic_hidden = config.hidden if config.critic_hidden is None or config.shared else config.critic_hidden
        self.torso, self.critic_torso, critic_inputs = torso, None, inputs
        if critic_torso is not None:
            self.critic_torso, critic_inputs = critic_torso
        self.memory = self.critic_memory = None
        if config.memory != "none":
            self.memory = Memory(config.memory, inputs, config.memory_size, ortho_init=ortho)
            if not config.shared:
                self.critic_memory = Memory(config.memory, critic_inputs, config.memory_size, ortho_init=ortho)
            inputs = critic_inputs = config.memory_size
        self.features = config.hidden[-1] if config.hidden else inputs
        self.actor = mlp(inputs, config.hidden, activation=config.activation, ortho_init=ortho)
        if config.shared:
            # Past torch's registry: a module registered under two names is in the state dict twice.
            self.__dict__["critic"] = self.actor
        else:
            self.critic = mlp(critic_inputs, critic_hidden, activation=config.activation, ortho_init=ortho)
        critic_features = critic_hidden[-1] if critic_hidden else critic_inputs
        self.value_out = layer(critic_features, 1, gain=1.0, ortho_init=ortho)
        self.policy_out: nn.Module = nn.Identity()

    def with_outputs(self, outputs: int, *, ortho_init: bool) -> Trunks:
        """Add the actor's last layer and return self. Its gain of 0.01 makes the first policy nearly uniform (detail C2)."""
        self.policy_out = layer(self.features, outputs, gain=0.01, ortho_init=ortho_init)
        return self

    def forward(self, obs: dict[str, Tensor], walk: Walk | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Return the head's input, the value and the actor's features, one row each; `walk` gets the new memory state."""
        encoded = self._encode(self.torso, obs)
        features = self.actor(self._remember("memory", self.memory, encoded, walk))
        if self.critic is self.actor:
            critic_features = features
        else:
            encoded = encoded if self.critic_torso is None else self._encode(self.critic_torso, obs)
            critic_features = self.critic(self._remember("critic_memory", self.critic_memory, encoded, walk))
        return self.policy_out(features), self.value_out(critic_features).squeeze(-1), features

    def value(self, obs: dict[str, Tensor], walk: Walk | None = None) -> Tensor:
        """Return the value, computing the critic only."""
        separate = self.critic_memory is not None
        name, memory = ("critic_memory", self.critic_memory) if separate else ("memory", self.memory)
        x = self._remember(name, memory, self._critic_input(obs), walk)
        return self.value_out(self.critic(x)).squeeze(-1)

    def walk_on(self, obs: dict[str, Tensor], walk: Walk) -> None:
        """Advance the memories over these steps, and compute nothing else."""
        for name, memory in self.memories().items():
            self._remember(
                name, memory, self._encode(self.torso, obs) if name == "memory" else self._critic_input(obs), walk
            )

    def memories(self) -> dict[str, Memory]:
        """{name in the context: memory}"""
        both = {"memory": self.memory, "critic_memory": self.critic_memory}
        return {name: memory for name, memory in both.items() if memory is not None}

    def _critic_input(self, obs: dict[str, Tensor]) -> Tensor:
        return self._encode(self.torso if self.critic_torso is None else self.critic_torso, obs)

    def _encode(self, torso: nn.Module, obs: dict[str, Tensor]) -> Tensor:
        """Return a torso's output in the dtype of the weights, which `policy.double()` or `.half()` may have changed."""
        return torso(obs).to(self.value_out.weight.dtype)

    def _remember(self, name: str, memory: Memory | None, x: Tensor, walk: Walk | None) -> Tensor:
        if memory is None:
            return x
        assert walk is not None, "a policy with memory needs to know how its rows lie in time"
        # A rollout stores float32; `policy.double()` changed the weights since.
        carry = walk.carry[name].to(x.dtype)
        hidden, carried = memory.forward(x.unflatten(0, walk.shape), carry, walk.start)
        walk.carry = {**walk.carry, name: carried}
        return hidden.flatten(0, 1)


class CustomNetwork(nn.Module):
    """A user's network: `module(obs)` returns (head input [B, outputs], value [B]). It has no memory."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, obs: dict[str, Tensor], walk: Walk | None = None) -> tuple[Tensor, Tensor, Tensor]:
        raw, value = self.module(obs)
        return raw, value.reshape(len(raw)), raw

    def memories(self) -> dict[str, Memory]:
        return {}

    def value(self, obs: dict[str, Tensor], walk: Walk | None = None) -> Tensor:
        """Return the value. This costs a full forward pass: which part of the module the value needs is unknown."""
        return self.forward(obs)[1]


def probe(module: nn.Module, observation: ObservationSpace) -> object:
    """Return a module's output for two observations of zeros: sizes are read from it, and mistakes show up early."""
    empty = {name: torch.zeros((2, *box.shape), dtype=getattr(torch, box.dtype)) for name, box in observation.items()}
    with torch.no_grad():
        return module(empty)


def feature_size(torso: nn.Module, observation: ObservationSpace) -> int:
    """Return the width of a torso's output."""
    features = probe(torso, observation)
    if not isinstance(features, Tensor) or features.dim() != 2 or len(features) != 2:
        got = list(features.shape) if isinstance(features, Tensor) else type(features).__name__
        raise PolicyError(f"the torso returned {got} for 2 observations; it must return a tensor [2, features]")
    return features.shape[1]


def check_network(module: nn.Module, observation: ObservationSpace, outputs: int) -> None:
    """Raise `PolicyError` unless a custom network returns (tensor [B, outputs], tensor of B values)."""
    result = probe(module, observation)
    parts = result if isinstance(result, tuple) else (result,)
    tensors = [part for part in parts if isinstance(part, Tensor)]
    if len(parts) == len(tensors) == 2 and tensors[0].shape == (2, outputs) and tensors[1].numel() == 2:
        return
    shapes = [list(part.shape) if isinstance(part, Tensor) else type(part).__name__ for part in parts]
    raise PolicyError(f"the network returned {shapes} for 2 observations; it must return ([2, {outputs}], [2])")


def refuse_stateful_layers(policy: nn.Module) -> None:
    """Raise for BatchNorm or Dropout: the policy that learns would not be the policy that acted (ratio ≠ 1)."""
    for name, module in policy.named_modules():
        kind = type(module).__name__
        drops = "Dropout" in kind and getattr(module, "p", 1.0) != 0.0
        drops |= isinstance(inside := getattr(module, "dropout", 0.0), float) and inside > 0.0  # LSTM, attention
        if drops or "BatchNorm" in kind or getattr(module, "track_running_stats", False):
            raise PolicyError(
                f"the policy has {kind} at '{name}': with identical weights it gives other probabilities when "
                "learning than when acting; use LayerNorm, or set allow_stateful_norm=True to allow it"
            )
