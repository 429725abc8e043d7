"""Reward models, and a value model that is separate from the policy."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from surefoot.errors import ConfigError
from surefoot.lm.policy.adapters import adapt, targets_in
from surefoot.lm.policy.backbone import Backbone, layers_of


def _trunk(base: Any) -> Any:
    """Return a copy of a model's trunk without dropout; a shared one would change with the policy."""
    trunk = copy.deepcopy(getattr(base, "base_model", base))
    for module in trunk.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return trunk


def last_token(states: Tensor, mask: Tensor) -> Tensor:
    """Return the state of each row's last unmasked token, [B, width], for padding on either side."""
    position = torch.arange(mask.shape[1], device=mask.device) * mask.long()
    return states[torch.arange(len(states), device=states.device), position.argmax(1)]


class _ScoreHead(nn.Module):
    """The linear head of a reward model: one score per row, (raw - shift) · gain."""

    shift: Tensor
    gain: Tensor

    def make_head(self, width: int) -> None:
        """Add the head for features of `width` numbers, with small random weights (Stiennon et al. 2020)."""
        self.head = nn.Linear(width, 1)
        nn.init.normal_(self.head.weight, std=1.0 / math.sqrt(width + 1))
        nn.init.zeros_(self.head.bias)
        self.register_buffer("shift", torch.zeros(()))
        self.register_buffer("gain", torch.ones(()))

    def scored(self, features: Tensor) -> Tensor:
        """Return [B] scores from [B, width] features."""
        return (self.head(features).squeeze(-1) - self.shift) * self.gain


POOLINGS = ("last", "mean", "attention")


class RewardModel(_ScoreHead):
    """A model that returns one score per row, [B]: its own trunk, pooled over the tokens, and a linear head.

    Scores are (raw - shift) · gain; `train_reward_model` sets both so that scores of its pairs have mean 0 and standard
    deviation 1.

    Args:
        base_model: A Hugging Face model; its trunk is copied.
        hidden_size: Width of its hidden states, checked if given.
        frozen: Train the head only.
        rank: Rank of adapters on the attention of a frozen trunk, which learn with the head; 0: none.
        pooling: The last token, the mean over the tokens, or an average with learned weights (attention).
    """

    def __init__(
        self,
        base_model: Any,
        hidden_size: int | None = None,
        *,
        frozen: bool = False,
        rank: int = 0,
        pooling: str = "last",
    ) -> None:
        super().__init__()
        if pooling not in POOLINGS:
            raise ConfigError(f"pooling is {pooling!r}; it must be {', '.join(POOLINGS)}")
        self.trunk = _trunk(base_model)
        width = int(self.trunk.get_input_embeddings().weight.shape[1])
        if hidden_size not in (None, width):
            raise ConfigError(f"hidden_size is {hidden_size} but this model's hidden states have {width}")
        self.make_head(width)
        self.trunk.requires_grad_(not frozen)
        self.rank, self.pooling = rank, pooling
        # All tokens have the same weight at the start.
        self.query = nn.Parameter(torch.zeros(width)) if pooling == "attention" else None
        generator = torch.Generator().manual_seed(0)
        for layer in layers_of(self.trunk)[1] if rank else ():
            for path in targets_in(layer, "attention"):
                adapt(layer, path, rank=rank, alpha=2.0 * rank, generator=generator)
        # Features of a frozen model are computed once for all epochs.
        self.frozen = frozen and not rank and self.query is None

    def features(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return the features, [B, width] float32."""
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.frozen):
            output = self.trunk(input_ids=input_ids, attention_mask=attention_mask, use_cache=False)
        if self.pooling == "last":
            return last_token(output.last_hidden_state, attention_mask).float()
        states = output.last_hidden_state.float()
        logits = states @ self.query if self.query is not None else torch.zeros_like(states[..., 0])
        weights = logits.masked_fill(attention_mask == 0, -math.inf).softmax(-1)
        return (weights.unsqueeze(-1) * states).sum(1)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return self.scored(self.features(input_ids, attention_mask))


class BackboneReward(_ScoreHead):
    """A reward head on the policy's backbone with its adapters off, so that there is no second model in memory."""

    frozen = True

    def __init__(self, backbone: Backbone) -> None:
        super().__init__()
        self.__dict__["backbone"] = backbone  # not registered: its weights do not belong to this module
        self.make_head(backbone.width)
        self.to(backbone.device)

    def features(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return the features, [B, width] float32; rows must be padded on the right."""
        backbone: Backbone = self.__dict__["backbone"]
        with backbone.reference():
            return last_token(backbone.hidden(input_ids), attention_mask).float()

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        backbone: Backbone = self.__dict__["backbone"]
        with backbone.reference():
            states = backbone.hidden(input_ids)
        # `consult` needs the reference's states of the same tokens next.
        backbone.remember(input_ids, states)
        return self.scored(last_token(states, attention_mask).float())


class ValueModel(nn.Module):
    """A model that returns one value per token, [B, L]; every value is 0 at the start.

    Args:
        base_model: A Hugging Face model; its trunk is copied.
        hidden_size: Width of its hidden states, checked if given.
    """

    def __init__(self, base_model: Any, hidden_size: int | None = None) -> None:
        super().__init__()
        self.trunk = _trunk(base_model)
        width = int(self.trunk.get_input_embeddings().weight.shape[1])
        if hidden_size not in (None, width):
            raise ConfigError(f"hidden_size is {hidden_size} but this model's hidden states have {width}")
        self.head = nn.Linear(width, 1)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        output = self.trunk(input_ids=input_ids, attention_mask=attention_mask, use_cache=False)
        return self.head(output.last_hidden_state.float()).squeeze(-1)


def pad(rows: Sequence[np.ndarray], device: torch.device) -> tuple[Tensor, Tensor]:
    """Return (ids, mask), padded on the right."""
    size = max(len(row) for row in rows)
    ids = torch.zeros(len(rows), size, dtype=torch.int64)
    mask = torch.zeros_like(ids)
    for i, row in enumerate(rows):
        ids[i, : len(row)], mask[i, : len(row)] = torch.from_numpy(row), 1
    return ids.to(device), mask.to(device)
