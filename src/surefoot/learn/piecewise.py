"""A learner that takes the same steps in less memory: a minibatch in pieces, whose gradients add up to its own."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from surefoot.core.batch import Batch
from surefoot.core.losses import Losses
from surefoot.learn.config import PPOConfig
from surefoot.learn.learner import Knobs, Learner
from surefoot.nets.policy import Policy


class PiecewiseLearner(Learner):
    """`columns_at_once` bounds what torch keeps for one gradient. A matter of memory, not of learning: no knob of PPO."""

    def __init__(
        self,
        policy: Policy,
        config: PPOConfig,
        *,
        columns_at_once: int,
        total_updates: int | None = None,
        device: str | torch.device = "cpu",
    ) -> None:
        super().__init__(policy, config, total_updates=total_updates, device=device)
        self.columns_at_once = columns_at_once

    def _loss(self, minibatch: Batch, knobs: Knobs) -> tuple[Losses, Tensor]:
        """Already back-propagated; each piece counts by its valid steps."""
        advantage, std = self._judged(minibatch)
        whole, most = replace(minibatch, advantage=advantage), self.columns_at_once
        pieces = [whole.slice(i, min(i + most, whole.columns)) for i in range(0, whole.columns, most)]
        counts = [p.advantage.numel() if p.valid is None else int(p.valid.sum()) for p in pieces]
        self.optimizer.zero_grad()
        sums = torch.zeros(5, device=self.device)
        log_ratio: list[Tensor] = []
        for piece, count in zip(pieces, counts, strict=True):
            if count == 0:  # streams in which nothing happened
                log_ratio.append(torch.zeros_like(piece.log_prob))
                continue
            losses = self._objective(piece, piece.advantage, knobs)
            share = count / sum(counts)
            (losses.total * share).backward()
            reference = torch.zeros_like(losses.total) if losses.kl_to_reference is None else losses.kl_to_reference
            parts = (losses.total, losses.policy, losses.value, losses.entropy, reference)
            sums += torch.stack([x.detach() for x in parts]) * share
            log_ratio.append(losses.log_ratio)
        total, policy, value, entropy, reference = sums.unbind()
        known = None if minibatch.ref_log_prob is None else reference
        return Losses(total, policy, value, entropy, known, torch.cat(log_ratio, dim=1)), std

    def _gradient(self, losses: Losses) -> Tensor:
        return self.optimizer.clip(self.config.max_grad_norm)
