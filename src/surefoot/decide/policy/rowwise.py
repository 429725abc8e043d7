"""Policies whose rows each have their own candidates."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from surefoot.core.batch import Batch, Evaluation
from surefoot.errors import ShapeError
from surefoot.nets.distributions import Categorical, mask_logits, require_choice
from surefoot.nets.policy import PolicyInput, PolicyOutput


class RowwisePolicy(nn.Module):
    """A policy without memory: `logits` and `values` depend on the observations of one row."""

    sequential = False

    @abstractmethod
    def logits(self, obs: dict[str, Tensor]) -> Tensor:
        """Return the logits of each row's candidates, [N, K]."""

    @abstractmethod
    def values(self, obs: dict[str, Tensor]) -> Tensor:
        """Return the value of each row, [N]."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return the constructor's arguments as JSON."""

    def act(self, inputs: PolicyInput, *, generator: torch.Generator, deterministic: bool = False) -> PolicyOutput:
        if inputs.action_mask is not None:
            require_choice(inputs.action_mask)
        dist = self._distribution(inputs.obs, inputs.action_mask)
        action = dist.mode() if deterministic else dist.sample(generator)
        return PolicyOutput(
            action=action, value=self.value(inputs), log_prob=dist.log_prob(action), distribution=dist, context={}
        )

    def value(self, inputs: PolicyInput) -> Tensor:
        return self.values(inputs.obs)

    def evaluate(self, batch: Batch) -> Evaluation:
        obs = {name: part.flatten(0, 1) for name, part in batch.obs.items()}
        mask = None if batch.action_mask is None else batch.action_mask.flatten(0, 1)
        shape = batch.advantage.shape
        dist = self._distribution(obs, mask)
        log_prob = dist.log_prob(batch.action.flatten(0, 1))
        return Evaluation(log_prob.view(shape), dist.entropy().view(shape), self.values(obs).view(shape))

    def _distribution(self, obs: dict[str, Tensor], mask: Tensor | None) -> Categorical:
        logits = self.logits(obs)
        return Categorical(logits if mask is None else mask_logits(logits, mask))

    def initial_context(self, streams: int) -> dict[str, Tensor]:
        return {}

    def renew_context(self, context: dict[str, Tensor]) -> dict[str, Tensor]:
        return context

    def env_action(self, action: np.ndarray) -> np.ndarray:
        return action

    def absorb(self, obs: dict[str, np.ndarray]) -> None:
        """Do nothing: vectors are not normalised."""

    def action_std(self) -> float | None:
        return None

    def choices(self) -> tuple[int, ...]:
        """Return (): the number of candidates differs per row, so `act` checks the masks."""
        return ()


class CandidatePolicy(RowwisePolicy):
    """logits_k = base_k + W[option_k] · x and value = guess + v · x, over K candidates that may differ per row.

    Observations: `x` [N, d], `base` [N, K], `option` [N, K], `guess` [N]. Weights start at 0: the logits of an
    untrained policy, or of a new option, are exactly `base`.
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
