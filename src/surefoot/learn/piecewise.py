"""The same gradient steps in less memory: a minibatch in pieces, whose gradients add up to its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from surefoot.core.batch import Batch
from surefoot.core.losses import Losses
from surefoot.learn.learner import MakeUpdate
from surefoot.learn.rate_control import Knobs
from surefoot.learn.torch_update import TorchUpdate


class PiecewiseUpdate(TorchUpdate):
    """Gradient steps that add up the gradient of a minibatch from pieces of at most `columns_at_once` columns.

    That bounds the memory that torch keeps for one gradient. It does not change what is learned, so it is no knob of PPO.
    """

    columns_at_once: int

    def loss(self, minibatch: Batch, knobs: Knobs) -> tuple[Losses, Tensor]:
        """Already back-propagated; each piece counts by its valid steps."""
        advantage, std = self.judged(minibatch)
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
            losses = self.objective(piece, piece.advantage, knobs)
            share = count / sum(counts)
            (losses.total * share).backward()
            reference = torch.zeros_like(losses.total) if losses.kl_to_reference is None else losses.kl_to_reference
            parts = (losses.total, losses.policy, losses.value, losses.entropy, reference)
            sums += torch.stack([x.detach() for x in parts]) * share
            log_ratio.append(losses.log_ratio)
        total, policy, value, entropy, reference = sums.unbind()
        known = None if minibatch.ref_log_prob is None else reference
        return Losses(total, policy, value, entropy, known, torch.cat(log_ratio, dim=1)), std

    def gradient(self, losses: Losses) -> Tensor:
        return self.optimizer.clip(self.config.max_grad_norm)


def piecewise(columns_at_once: int) -> MakeUpdate:
    """Return the `make_update` of a learner that computes gradients piece by piece."""

    def make(*parts: Any) -> PiecewiseUpdate:
        update = PiecewiseUpdate(*parts)
        update.columns_at_once = columns_at_once
        return update

    return make
