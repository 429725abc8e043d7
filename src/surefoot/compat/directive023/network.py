"""Directive-023's network: an embedding through 256, 256 and 128 units to logits and, apart from them, to a value.

LayerNorm stands between the layers. BatchNorm and dropout compute differently while learning than while acting, which
puts most of PPO's ratios outside the clip before anything is learned; they are there with `stateful=True`, which a policy
accepts only with `allow_stateful_norm=True`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

DROPOUT = 0.1
# Almost equal probabilities at first, so that no action is favoured by chance.
FIRST_LOGITS = 0.01


class Tower(nn.Module):
    """[…, widths[0]] to […, outputs] through hidden layers of the other widths, with LayerNorm and ReLU."""

    def __init__(self, widths: Sequence[int], outputs: int, *, xavier: bool = False, stateful: bool = False) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for before, after in pairwise(widths):
            linear = nn.Linear(before, after)
            if xavier:
                nn.init.xavier_uniform_(linear.weight)
                nn.init.zeros_(linear.bias)
            layers += [linear, nn.BatchNorm1d(after) if stateful else nn.LayerNorm(after), nn.ReLU()]
            layers += [nn.Dropout(DROPOUT)] if stateful else []
        self.trunk = nn.Sequential(*layers)
        self.out = nn.Linear(widths[-1], outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.trunk(x))


class EmbeddingNetwork(nn.Module):
    """All parts of an observation, concatenated, to logits [B, actions] and values [B]; no weight is shared."""

    def __init__(self, parts: dict[str, int], actions: int, hidden: int = 256, *, stateful: bool = False) -> None:
        super().__init__()
        self.parts = tuple(parts)
        widths = (sum(parts.values()), hidden, hidden, hidden // 2)
        self.policy = Tower(widths, actions, xavier=True, stateful=stateful)
        nn.init.xavier_uniform_(self.policy.out.weight, gain=FIRST_LOGITS)
        nn.init.zeros_(self.policy.out.bias)
        self.value = Tower(widths, 1, xavier=True, stateful=stateful)

    def forward(self, obs: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        embedding = torch.cat([obs[name].flatten(1) for name in self.parts], dim=1)
        return self.policy(embedding), self.value(embedding).squeeze(-1)
