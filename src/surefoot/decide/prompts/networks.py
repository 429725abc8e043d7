"""The networks of the seed: an embedding through 256, 256 and 128 units to a choice and, apart from it, to a value.

It had BatchNorm and dropout between the layers. Both answer differently while learning than while acting, which puts
most of PPO's ratios outside the clip before anything was learned; LayerNorm stands there instead. The exact net is
`stateful=True`, and a policy takes it only with `allow_stateful_norm=True`.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

DROPOUT = 0.1


def trunk(input_dim: int, hidden_dim: int, *, stateful: bool = False) -> nn.Sequential:
    """input → hidden → hidden → hidden / 2, Xavier weights."""
    layers: list[nn.Module] = []
    widths = (input_dim, hidden_dim, hidden_dim, hidden_dim // 2)
    for before, after in pairwise(widths):
        linear = nn.Linear(before, after)
        nn.init.xavier_uniform_(linear.weight)
        nn.init.zeros_(linear.bias)
        layers += [linear, nn.BatchNorm1d(after) if stateful else nn.LayerNorm(after), nn.ReLU()]
        layers += [nn.Dropout(DROPOUT)] if stateful else []
    return nn.Sequential(*layers)


class PolicyNetwork(nn.Module):
    """Embeddings [B, input_dim] to logits [B, action_dim]."""

    def __init__(
        self, input_dim: int = 1536, action_dim: int = 5, hidden_dim: int = 256, *, stateful: bool = False
    ) -> None:
        super().__init__()
        self.trunk = trunk(input_dim, hidden_dim, stateful=stateful)
        self.out = nn.Linear(hidden_dim // 2, action_dim)
        nn.init.xavier_uniform_(self.out.weight, gain=0.01)  # almost even at first: no mutation is favoured by chance
        nn.init.zeros_(self.out.bias)

    def forward(self, embedding: Tensor) -> Tensor:
        return self.out(self.trunk(embedding))


class ValueNetwork(nn.Module):
    """Embeddings [B, input_dim] to what is to be expected of them, [B]."""

    def __init__(self, input_dim: int = 1536, hidden_dim: int = 256, *, stateful: bool = False) -> None:
        super().__init__()
        self.trunk = trunk(input_dim, hidden_dim, stateful=stateful)
        self.out = nn.Linear(hidden_dim // 2, 1)

    def forward(self, embedding: Tensor) -> Tensor:
        return self.out(self.trunk(embedding)).squeeze(-1)


class MutationNetwork(nn.Module):
    """Both, for all parts of an observation side by side; no weight is shared."""

    def __init__(
        self, parts: dict[str, int], action_dim: int, hidden_dim: int = 256, *, stateful: bool = False
    ) -> None:
        super().__init__()
        self.parts = tuple(parts)
        width = sum(parts.values())
        self.policy = PolicyNetwork(width, action_dim, hidden_dim, stateful=stateful)
        self.value = ValueNetwork(width, hidden_dim, stateful=stateful)

    def forward(self, obs: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        seen = torch.cat([obs[name].flatten(1) for name in self.parts], dim=1)
        return self.policy(seen), self.value(seen)
