"""Gradient steps in less memory: the gradient of a minibatch is the sum over pieces of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from surefoot.core.batch import Batch
from surefoot.core.losses import Losses
from surefoot.learn.rate_control import Knobs
from surefoot.learn.torch_update import TorchUpdate


class PiecewiseUpdate(TorchUpdate):
    """Gradient steps that back-propagate at most `columns_at_once` columns of a minibatch at a time.

    This bounds the activations that torch stores. It does not change what is learned, so it is not a setting of PPO.
    """

    def __init__(self, *parts: Any, columns_at_once: int) -> None:
        super().__init__(*parts)
        self.columns_at_once = columns_at_once

    def loss(self, minibatch: Batch, knobs: Knobs) -> tuple[Losses, Tensor]:
        """Return the losses, already back-propagated; each piece counts by its number of valid steps."""
        advantage, std = self.scaled_advantage(minibatch)
        batch, most = replace(minibatch, advantage=advantage), self.columns_at_once
        pieces = [batch.slice(i, min(i + most, batch.columns)) for i in range(0, batch.columns, most)]
        counts = [p.advantage.numel() if p.valid is None else int(p.valid.sum()) for p in pieces]
        self.optimizer.zero_grad()
        sums = torch.zeros(5, device=self.device)
        log_ratio: list[Tensor] = []
        for piece, count in zip(pieces, counts, strict=True):
            if count == 0:  # padding only; its mean would be NaN
                log_ratio.append(torch.zeros_like(piece.log_prob))
                continue
            losses = self.objective(piece, piece.advantage, knobs)
            share = count / sum(counts)
            (losses.total * share).backward()
            reference = torch.zeros_like(losses.total) if losses.kl_to_reference is None else losses.kl_to_reference
            parts = (losses.total, losses.policy, losses.value, losses.entropy, reference)
            sums += torch.stack([x.detach() for x in parts]) * share
            log_ratio.append(losses.log_ratio)
        total, policy, value, entropy, reference = sums.unbind()
        kl = None if minibatch.ref_log_prob is None else reference
        return Losses(total, policy, value, entropy, kl, torch.cat(log_ratio, dim=1)), std

    def gradient(self, losses: Losses) -> Tensor:
        return self.optimizer.clip(self.config.max_grad_norm)
