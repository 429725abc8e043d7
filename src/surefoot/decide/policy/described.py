"""A policy over candidates that are known by their descriptions only, so that new ones need no training."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from surefoot.decide.policy.embedding_network import Tower
from surefoot.decide.policy.rowwise import RowwisePolicy

HIDDEN, MEETING = 128, 32
"""Hidden units per tower, and size of the space in which query and description are multiplied."""


class DescribedPolicy(RowwisePolicy):
    """logits_k = prior · cos(x, d_k) + u(x) · v(d_k) / √m, over K candidates that may differ per row.

    Observations: `obs` [N, D] is x, `candidates` [N, K, D] are the d_k. v starts at 0: an untrained policy
    equals its prior. No weight belongs to a candidate: what was learned from some applies to others with similar descriptions.
    """

    def __init__(self, dim: int, *, prior: float = 5.0, seed: int = 0) -> None:
        super().__init__()
        self.dim = dim
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.query, self.described, self.critic = (
                Tower((dim, HIDDEN, HIDDEN), outputs) for outputs in (MEETING, MEETING, 1)
            )
        nn.init.zeros_(self.described.out.weight)
        nn.init.zeros_(self.described.out.bias)
        self.prior = nn.Parameter(torch.tensor([float(prior)]))

    def values(self, obs: dict[str, Tensor]) -> Tensor:
        return self.critic(obs["obs"]).squeeze(-1)

    def logits(self, obs: dict[str, Tensor]) -> Tensor:
        x, d = obs["obs"], obs["candidates"]
        cosine = torch.einsum("nd,nkd->nk", nn.functional.normalize(x, dim=-1), nn.functional.normalize(d, dim=-1))
        met = torch.einsum("nm,nkm->nk", self.query(x), self.described(d)) / math.sqrt(MEETING)
        return self.prior * cosine + met

    def describe(self) -> dict[str, Any]:
        return {"kind": "described", "dim": self.dim}
