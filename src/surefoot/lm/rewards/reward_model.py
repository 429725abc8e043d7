"""Reward models from preferences (Bradley–Terry), and a critic that is a model of its own."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from surefoot.errors import ConfigError
from surefoot.lm.policy.backbone import Backbone


def _trunk(base: Any) -> Any:
    """A copy of a model's trunk: nothing here ever shares weights with a policy that learns."""
    trunk = copy.deepcopy(getattr(base, "base_model", base))
    for module in trunk.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return trunk


def last_token(states: Tensor, mask: Tensor) -> Tensor:
    """[B, width]: the state of each row's last token that counts, whichever side the padding is on."""
    place = torch.arange(mask.shape[1], device=mask.device) * mask.long()
    return states[torch.arange(len(states), device=states.device), place.argmax(1)]


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


class RewardModel(_ScoreHead):
    """`model(input_ids, attention_mask) → [B]`: a trunk of its own and a linear head on the last token.

    Scores are (raw - shift) · gain, with both set by `train_reward_model` so that they have mean 0 and deviation 1 on the
    pairs it was fitted to. `frozen` leaves the trunk as it is and learns the head alone.
    """

    def __init__(self, base_model: Any, hidden_size: int | None = None, *, frozen: bool = False) -> None:
        super().__init__()
        self.trunk = _trunk(base_model)
        width = int(self.trunk.get_input_embeddings().weight.shape[1])
        if hidden_size not in (None, width):
            raise ConfigError(f"hidden_size is {hidden_size} but this model's hidden states have {width}")
        self.make_head(width)
        self.frozen = frozen
        self.trunk.requires_grad_(not frozen)

    def features(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """[B, width] float32."""
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.frozen):
            said = self.trunk(input_ids=input_ids, attention_mask=attention_mask, use_cache=False)
        return last_token(said.last_hidden_state, attention_mask).float()

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return self.scored(self.features(input_ids, attention_mask))


class BackboneReward(_ScoreHead):
    """A reward head on the policy's own trunk with its adapters off: no second model in memory."""

    frozen = True

    def __init__(self, backbone: Backbone) -> None:
        super().__init__()
        self.__dict__["backbone"] = backbone  # past torch's registry: the trunk is not this module's
        self.make_head(backbone.width)
        self.to(backbone.device)

    def features(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """[B, width] float32; rows must be padded on the right."""
        backbone: Backbone = self.__dict__["backbone"]
        with backbone.reference():
            return last_token(backbone.hidden(input_ids), attention_mask).float()

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        backbone: Backbone = self.__dict__["backbone"]
        with backbone.reference():
            states = backbone.hidden(input_ids)
        backbone.remember(input_ids, states)  # the KL to the reference is asked for next, of the same tokens
        return self.scored(last_token(states, attention_mask).float())


class ValueModel(nn.Module):
    """`model(input_ids, attention_mask) → [B, L]`: what is still to come after each token; begins at 0 everywhere."""

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
        said = self.trunk(input_ids=input_ids, attention_mask=attention_mask, use_cache=False)
        return self.head(said.last_hidden_state.float()).squeeze(-1)


def pad(rows: Sequence[np.ndarray], device: torch.device) -> tuple[Tensor, Tensor]:
    """(ids, mask) padded on the right."""
    size = max(len(row) for row in rows)
    ids = torch.zeros(len(rows), size, dtype=torch.int64)
    mask = torch.zeros_like(ids)
    for i, row in enumerate(rows):
        ids[i, : len(row)], mask[i, : len(row)] = torch.from_numpy(row), 1
    return ids.to(device), mask.to(device)
