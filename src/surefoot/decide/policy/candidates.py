"""The policy over candidates: softmax of what is known beforehand plus a learned part, a row of weights an option."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from surefoot.decide.policy.rowwise import RowwisePolicy
from surefoot.errors import ShapeError


class CandidatePolicy(RowwisePolicy):
    """logits_k = base_k + W[option_k] · x and value = guess + v · x, over K candidates that may differ from row to row.

    Observations: `x` [N, d], `base` [N, K], `option` [N, K], `guess` [N]. Weights begin at 0: an untrained policy
    is exactly its base, and an option that was never seen is too.
    """

    def __init__(self, dim: int, options: int) -> None:
        super().__init__()
        self.dim, self.options = dim, options
        self.weight = nn.Parameter(torch.zeros(options, dim))
        self.critic = nn.Parameter(torch.zeros(dim))

    def values(self, obs: dict[str, Tensor]) -> Tensor:
        return obs["guess"] + obs["x"] @ self.critic

    def logits(self, obs: dict[str, Tensor]) -> Tensor:
        option = obs["option"]
        if option.numel() and int(option.max()) >= self.options:
            raise ShapeError(f"option {int(option.max())} is beyond the {self.options} this policy has weights for")
        return obs["base"] + (obs["x"] @ self.weight.T).gather(-1, option)

    def describe(self) -> dict[str, Any]:
        return {"kind": "candidates", "dim": self.dim, "options": self.options}
