"""A policy over candidates it has never seen: a candidate is what its description says, and nothing else."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from surefoot.core.batch import Batch, Evaluation
from surefoot.nets.distributions import Categorical, mask_logits, require_choice
from surefoot.nets.policy import PolicyOutput, Seen

HIDDEN, MEETING = 128, 32
"""Units of a tower, and numbers in which what is seen and what is described meet."""


class Tower(nn.Module):
    """[…, before] to […, after] through two hidden layers with LayerNorm."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for a, b in pairwise((before, HIDDEN, HIDDEN)):
            layers += [nn.Linear(a, b), nn.LayerNorm(b), nn.ReLU()]
        self.trunk = nn.Sequential(*layers)
        self.out = nn.Linear(HIDDEN, after)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.trunk(x))


class DescribedPolicy(nn.Module):
    """logits_k = prior · cos(x, d_k) + u(x) · v(d_k) / √m, over K candidates that may differ from row to row.

    Observations: `obs` [N, D] is x, `candidates` [N, K, D] are the d_k. v begins at 0: an untrained policy is its prior.
    No weight belongs to a candidate, so that what was learned of some holds for others that are described alike.
    """

    sequential = False

    def __init__(self, dim: int, *, prior: float = 5.0, seed: int = 0) -> None:
        super().__init__()
        self.dim = dim
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.query, self.described, self.critic = Tower(dim, MEETING), Tower(dim, MEETING), Tower(dim, 1)
        nn.init.zeros_(self.described.out.weight)
        nn.init.zeros_(self.described.out.bias)
        self.prior = nn.Parameter(torch.tensor([float(prior)]))

    def act(self, seen: Seen, *, generator: torch.Generator, deterministic: bool = False) -> PolicyOutput:
        if seen.action_mask is not None:
            require_choice(seen.action_mask)
        dist = self._distribution(seen.obs, seen.action_mask)
        action = dist.mode() if deterministic else dist.sample(generator)
        return PolicyOutput(
            action=action, value=self.value(seen), log_prob=dist.log_prob(action), distribution=dist, context={}
        )

    def value(self, seen: Seen) -> Tensor:
        return self.critic(seen.obs["obs"]).squeeze(-1)

    def evaluate(self, batch: Batch) -> Evaluation:
        obs = {name: part.flatten(0, 1) for name, part in batch.obs.items()}
        mask = None if batch.action_mask is None else batch.action_mask.flatten(0, 1)
        shape = batch.advantage.shape
        dist = self._distribution(obs, mask)
        value = self.critic(obs["obs"]).squeeze(-1)
        log_prob = dist.log_prob(batch.action.flatten(0, 1))
        return Evaluation(log_prob.view(shape), dist.entropy().view(shape), value.view(shape))

    def _distribution(self, obs: dict[str, Tensor], mask: Tensor | None) -> Categorical:
        x, d = obs["obs"], obs["candidates"]
        cosine = torch.einsum("nd,nkd->nk", nn.functional.normalize(x, dim=-1), nn.functional.normalize(d, dim=-1))
        met = torch.einsum("nm,nkm->nk", self.query(x), self.described(d)) / math.sqrt(MEETING)
        logits = self.prior * cosine + met
        return Categorical(logits if mask is None else mask_logits(logits, mask))

    def initial_context(self, streams: int) -> dict[str, Tensor]:
        return {}

    def renew_context(self, context: dict[str, Tensor]) -> dict[str, Tensor]:
        return context

    def env_action(self, action: np.ndarray) -> np.ndarray:
        return action

    def absorb(self, obs: dict[str, np.ndarray]) -> None:
        """Nothing: embeddings come as they are meant."""

    def action_std(self) -> float | None:
        return None

    def choices(self) -> tuple[int, ...]:
        """(): how many candidates there are differs from row to row, so masks are looked at in `act`."""
        return ()

    def describe(self) -> dict[str, Any]:
        return {"kind": "described", "dim": self.dim}
