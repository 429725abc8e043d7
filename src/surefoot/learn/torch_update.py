"""The gradient steps of one update in torch: the definition of the algorithm, which the kernel repeats."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from surefoot.core.batch import Batch
from surefoot.core.divergence import effective_sample_size, k3
from surefoot.core.losses import LOG_RATIO_LIMIT, Losses, ppo_loss
from surefoot.core.masked import masked_mean
from surefoot.core.moments import spread, standardize
from surefoot.data.rollout import Rollout
from surefoot.learn.config import PPOConfig
from surefoot.learn.minibatches import minibatch_size_for, split_sizes
from surefoot.learn.optimizer import Optimizer
from surefoot.learn.prepare import pieces, to_batch
from surefoot.learn.rate_control import Knobs
from surefoot.learn.report_builder import GradientSteps, Tally, describe
from surefoot.nets.policy import Policy

# One or two bad steps can come from a single outlier and leave the weights intact; three in a row cannot.
BAD_STEPS_BEFORE_ROLLBACK = 3
# 50 million parameters need 0.6 GB for the copy with Adam's two slots; beyond that a second copy may not fit in memory.
LARGEST_ROLLBACK = 50_000_000


class TorchUpdate:
    """All epochs of minibatch steps on one policy.

    Subclasses handle batches that are too large for one gradient or that are spread over several processes. They may
    override `learn`, `minibatches`, `loss`, `too_far` and `gradient`.
    """

    def __init__(
        self,
        policy: Policy,
        optimizer: Optimizer,
        config: PPOConfig,
        generator: torch.Generator,
        device: torch.device,
    ) -> None:
        self.policy, self.optimizer, self.config = policy, optimizer, config
        self.generator, self.device = generator, device
        self.bad_in_a_row = 0
        """Non-finite gradient steps since the last finite one."""

    def prepare(self, rollout: Rollout, valid: np.ndarray) -> tuple[Batch, dict[str, Any]]:
        """Return the batch with advantages and targets, and the moments of the rollout for the report."""
        config, sequential = self.config, self.policy.sequential
        batch = to_batch(rollout, valid, gamma=config.gamma, lam=config.lam, sequential=sequential, device=self.device)
        return batch, describe(batch, rollout, valid)

    def learn(self, batch: Batch, knobs: Knobs) -> GradientSteps:
        """Run all epochs, unless the policy moves beyond the target KL or its numbers stop being finite."""
        tally, error, stopped, bad_steps, rolled_back = Tally(), None, False, 0, False
        for epoch, minibatch in self.minibatches(pieces(batch, self.policy, self.config)):
            if minibatch.valid is not None and not bool(minibatch.valid.any()):
                continue  # streams with padding only; their mean would be NaN
            losses, advantage_std = self.loss(minibatch, knobs)
            if error is None:
                log_ratio = losses.log_ratio if minibatch.valid is None else losses.log_ratio[minibatch.valid]
                error = float(log_ratio.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT).expm1().abs().max())
            if self.too_far(losses, minibatch.valid):
                stopped = True
                break
            grad_norm = self.gradient(losses)
            if bool(torch.isfinite(grad_norm + losses.total)):
                self.optimizer.step(knobs.lr)
                tally.add(epoch, losses, minibatch.valid, grad_norm, advantage_std)
                self.bad_in_a_row = 0
                continue
            # Nothing was applied, so there is nothing to undo; but several in a row mean that the weights are bad.
            bad_steps, self.bad_in_a_row = bad_steps + 1, self.bad_in_a_row + 1
            if self.bad_in_a_row == BAD_STEPS_BEFORE_ROLLBACK:
                rolled_back = True
                break
        return GradientSteps(tally.table(clip=knobs.clip), error or 0.0, stopped, bad_steps, rolled_back)

    def minibatches(self, batch: Batch) -> Iterator[tuple[int, Batch]]:
        """Yield (epoch, minibatch); every epoch shuffles all columns and uses each exactly once (detail C6)."""
        config = self.config
        if config.normalize_advantage == "batch":
            batch.advantage, _ = standardize(batch.advantage, batch.valid)
        steps_per_column = batch.advantage.shape[0]
        size, _ = minibatch_size_for(batch.columns * steps_per_column, config.minibatch_size, config.minibatches)
        sizes = split_sizes(batch.columns, max(1, size // steps_per_column))
        for epoch in range(config.epochs):
            # Drawn on the CPU, so that every device gets the same minibatches for a seed.
            order = torch.randperm(batch.columns, generator=self.generator).to(self.device)
            shuffled, begin = batch.take(order), 0
            for width in sizes:
                yield epoch, shuffled.slice(begin, begin + width)
                begin += width

    def loss(self, minibatch: Batch, knobs: Knobs) -> tuple[Losses, Tensor]:
        """Return the losses of a minibatch, and the standard deviation of its raw advantages."""
        advantage, std = self.scaled_advantage(minibatch)
        return self.objective(minibatch, advantage, knobs), std

    def scaled_advantage(self, minibatch: Batch) -> tuple[Tensor, Tensor]:
        """Return (the advantage for the policy loss, the standard deviation before scaling)."""
        if self.config.normalize_advantage == "minibatch":
            return standardize(minibatch.advantage, minibatch.valid)
        return minibatch.advantage, spread(minibatch.advantage, minibatch.valid)[1]

    def objective(self, minibatch: Batch, advantage: Tensor, knobs: Knobs) -> Losses:
        """Return PPO's losses of a minibatch for `advantage`."""
        config = self.config
        return ppo_loss(
            self.policy.evaluate(minibatch),
            minibatch,
            advantage,
            clip=knobs.clip,
            value_clip=config.value_clip,
            vf_coef=config.vf_coef,
            ent_coef=knobs.ent_coef,
            kl_coef=config.kl_coef,
            dual_clip=config.dual_clip,
        )

    def too_far(self, losses: Losses, valid: Tensor | None) -> bool:
        """Return True once the policy is beyond the target KL; that ends all remaining epochs (P18)."""
        target = self.config.target_kl
        if target is None:
            return False
        kl = masked_mean(k3(losses.log_ratio.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)), valid)
        return float(kl) > self.config.kl_stop_factor * target

    def gradient(self, losses: Losses) -> Tensor:
        """Back-propagate, clip over all parameters together (detail C11), and return the norm before clipping."""
        self.optimizer.zero_grad()
        losses.total.backward()
        return self.optimizer.clip(self.config.max_grad_norm)

    def sample_size(self, batch: Batch) -> float:
        """Return the effective sample size under the importance ratio, as a share of the batch."""
        return sample_size_of(self.policy, batch)

    def copy(self) -> Callable[[], None] | None:
        """Return a function that restores the current weights and optimiser slots; None for a large model."""
        parameters = self.optimizer.parameters
        if sum(p.numel() for p in parameters) > LARGEST_ROLLBACK:
            return None
        slots = {name: x.clone() for name, x in self.optimizer.tensors().items()}
        weights = [p.detach().clone() for p in parameters]

        def restore() -> None:
            with torch.no_grad():
                for parameter, saved in zip(parameters, weights, strict=True):
                    parameter.copy_(saved)
            self.optimizer.load(slots)

        return restore


def sample_size_of(policy: Policy, batch: Batch) -> float:
    """Return the effective sample size under the importance ratio, as a share of the batch."""
    with torch.no_grad():
        log_ratio = policy.evaluate(batch).log_prob - batch.log_prob
    log_ratio = log_ratio.flatten() if batch.valid is None else log_ratio[batch.valid]
    return float(effective_sample_size(log_ratio.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)))
