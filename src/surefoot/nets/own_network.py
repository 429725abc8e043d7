"""Networks that users bring: what they must give, and which layers they must not have."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from surefoot.data.spaces import ObservationSpace
from surefoot.errors import PolicyError
from surefoot.nets.networks import Walk
from surefoot.nets.recurrent import Memory


class Whole(nn.Module):
    """A network of the user's own: `module(obs)` gives (what the head needs [B, outputs], value [B])."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, obs: dict[str, Tensor], walk: Walk | None = None) -> tuple[Tensor, Tensor, Tensor]:
        raw, value = self.module(obs)
        return raw, value.reshape(len(raw)), raw

    def memories(self) -> dict[str, Memory]:
        """None: a module of the user's own is asked about one moment at a time."""
        return {}

    def value(self, obs: dict[str, Tensor], walk: Walk | None = None) -> Tensor:
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
        parts = given if isinstance(given, tuple) else (given,)
        shapes = [list(part.shape) if isinstance(part, Tensor) else type(part).__name__ for part in parts]
        raise PolicyError(f"the network gave {shapes} for 2 observations; it must give ([2, {outputs}], [2])")


def refuse_stateful_layers(policy: nn.Module) -> None:
    """Raise for BatchNorm or Dropout: the policy that learns would not be the one that acted (ratio ≠ 1)."""
    for name, module in policy.named_modules():
        kind = type(module).__name__
        drops = "Dropout" in kind and getattr(module, "p", 1.0) != 0.0
        drops |= isinstance(inside := getattr(module, "dropout", 0.0), float) and inside > 0.0  # LSTM, attention
        if drops or "BatchNorm" in kind or getattr(module, "track_running_stats", False):
            raise PolicyError(
                f"the policy has {kind} at '{name}': with identical weights it gives other probabilities when "
                "learning than when acting; use LayerNorm, or set allow_stateful_norm=True to insist"
            )
