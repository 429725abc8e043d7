"""Networks: from the dict of observations to what the action head needs, a value, and the actor's features."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from surefoot.data.spaces import ObservationSpace
from surefoot.errors import PolicyError
from surefoot.nets.config import NetConfig
from surefoot.nets.torsos import layer, mlp


def through(layers: nn.Sequential, x: Tensor) -> Tensor:
    """What the layers make of `x`. Calling a module costs as much as a small matrix product; nobody hooks these."""
    for module in layers:
        x = module.forward(x)
    return x


class Trunks(nn.Module):
    """A torso, then layers for the actor and layers for the critic (the same ones if `shared`)."""

    def __init__(self, torso: nn.Module, inputs: int, config: NetConfig) -> None:
        super().__init__()
        critic_hidden = config.hidden if config.critic_hidden is None or config.shared else config.critic_hidden
        self.torso = torso
        self.features = config.hidden[-1] if config.hidden else inputs
        self.actor = mlp(inputs, config.hidden, activation=config.activation, ortho_init=config.ortho_init)
        self.critic = (
            self.actor
            if config.shared
            else mlp(inputs, critic_hidden, activation=config.activation, ortho_init=config.ortho_init)
        )
        critic_features = critic_hidden[-1] if critic_hidden else inputs
        self.value_out = layer(critic_features, 1, gain=1.0, ortho_init=config.ortho_init)
        self.policy_out: nn.Module = nn.Identity()

    def with_outputs(self, outputs: int, *, ortho_init: bool) -> Trunks:
        """Itself, with the actor's last layer: gain 0.01, so that the first policy is nearly uniform (detail C2)."""
        self.policy_out = layer(self.features, outputs, gain=0.01, ortho_init=ortho_init)
        return self

    def forward(self, obs: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        x = self.torso(obs)
        features = through(self.actor, x)
        judged = features if self.critic is self.actor else through(self.critic, x)
        return self.policy_out.forward(features), self.value_out.forward(judged).squeeze(-1), features

    def value(self, obs: dict[str, Tensor]) -> Tensor:
        """The critic alone."""
        return self.value_out.forward(through(self.critic, self.torso(obs))).squeeze(-1)


class Whole(nn.Module):
    """A network of the user's own: `module(obs)` gives (what the head needs [B, outputs], value [B])."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, obs: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        raw, value = self.module(obs)
        return raw, value.reshape(len(raw)), raw

    def value(self, obs: dict[str, Tensor]) -> Tensor:
        """The value alone; costs a whole pass, as nobody said which part of the module it needs."""
        return self.forward(obs)[1]


def probe(module: nn.Module, observation: ObservationSpace) -> object:
    """What a module gives for two empty observations: how sizes are found and mistakes are named early."""
    empty = {name: torch.zeros((2, *box.shape), dtype=getattr(torch, box.dtype)) for name, box in observation.items()}
    with torch.no_grad():
        return module(empty)


def feature_size(torso: nn.Module, observation: ObservationSpace) -> int:
    """Width of what a torso gives."""
    features = probe(torso, observation)
    if not isinstance(features, Tensor) or features.dim() != 2 or len(features) != 2:
        got = list(features.shape) if isinstance(features, Tensor) else type(features).__name__
        raise PolicyError(f"the torso gave {got} for 2 observations; it must give a tensor [2, features]")
    return features.shape[1]


def check_whole(module: nn.Module, observation: ObservationSpace, outputs: int) -> None:
    """Raise unless a whole network gives (tensor [B, outputs], tensor of B values)."""
    given = probe(module, observation)
    if (
        not isinstance(given, tuple)
        or len(given) != 2
        or not all(isinstance(part, Tensor) for part in given)
        or given[0].shape != (2, outputs)
        or given[1].numel() != 2
    ):
        shapes = [list(part.shape) if isinstance(part, Tensor) else type(part).__name__ for part in _parts(given)]
        raise PolicyError(f"the network gave {shapes} for 2 observations; it must give ([2, {outputs}], [2])")


def _parts(given: object) -> tuple[object, ...]:
    return given if isinstance(given, tuple) else (given,)
