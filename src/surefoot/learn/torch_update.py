"""The gradient steps of one update by torch: the algorithm as it is defined, which the kernel repeats."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from surefoot.core.batch import Batch
from surefoot.core.divergence import effective_sample_size, k3
from surefoot.core.losses import LOG_RATIO_LIMIT, Losses, ppo_loss
from surefoot.core.masked import masked_mean
from surefoot.core.moments import spread, standardize
from surefoot.learn.config import PPOConfig
from surefoot.learn.minibatches import minibatch_size_for, split_sizes
from surefoot.learn.optimizer import Optimizer
from surefoot.learn.rate_control import Knobs
from surefoot.learn.report_builder import GradientSteps, Tally
from surefoot.nets.policy import Policy

BAD_STEPS_BEFORE_ROLLBACK = 3
LARGEST_ROLLBACK = 50_000_000
"""Parameters up to which a copy is kept to go back to; a second copy of a large model would not fit."""


class TorchUpdate:
    """All epochs of minibatch steps on one policy.

    Where a batch is too large for one gradient, or lies in several processes, a subclass takes its place; `learn`,
    `minibatches`, `loss`, `too_far` and `gradient` are the steps that it may replace.
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
        """Gradient steps that were not finite since the last good one."""

    def learn(self, batch: Batch, knobs: Knobs) -> GradientSteps:
        """All epochs of minibatch steps, unless the policy moves too far or its numbers leave the finite."""
        tally, error, stopped, bad_steps, rolled_back = Tally(), None, False, 0, False
        for epoch, minibatch in self.minibatches(batch):
            if minibatch.valid is not None and not bool(minibatch.valid.any()):
                continue  # streams in which nothing happened
            losses, advantage_std = self.loss(minibatch, knobs)
            if error is None:
                error = _ratio_error(losses.log_ratio, minibatch.valid)
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
        """(epoch, minibatch): in every epoch all columns are shuffled and each is used exactly once (detail C6)."""
        if self.config.normalize_advantage == "batch":
            batch.advantage, _ = standardize(batch.advantage, batch.valid)
        steps_per_column = batch.advantage.shape[0]
        config = self.config
        size, _ = minibatch_size_for(batch.columns * steps_per_column, config.minibatch_size, config.minibatches)
        sizes = split_sizes(batch.columns, max(1, size // steps_per_column))
        for epoch in range(self.config.epochs):
            order = torch.randperm(batch.columns, generator=self.generator).to(self.device)
            shuffled, begin = batch.take(order), 0
            for width in sizes:
                yield epoch, shuffled.slice(begin, begin + width)
                begin += width

    def loss(self, minibatch: Batch, knobs: Knobs) -> tuple[Losses, Tensor]:
        """Return the losses of a minibatch, and the deviation of its advantages."""
        advantage, std = self.judged(minibatch)
        return self.objective(minibatch, advantage, knobs), std

    def judged(self, minibatch: Batch) -> tuple[Tensor, Tensor]:
        """(the advantage the policy is judged by, the deviation it has as it is)."""
        if self.config.normalize_advantage == "minibatch":
            return standardize(minibatch.advantage, minibatch.valid)
        return minibatch.advantage, spread(minibatch.advantage, minibatch.valid)[1]

    def objective(self, minibatch: Batch, advantage: Tensor, knobs: Knobs) -> Losses:
        """Return PPO's losses of a minibatch judged by `advantage`."""
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
        """True once the policy has moved beyond the target KL: ends this epoch and all that follow (P18)."""
        target = self.config.target_kl
        if target is None:
            return False
        moved = masked_mean(k3(losses.log_ratio.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)), valid)
        return float(moved) > self.config.kl_stop_factor * target

    def gradient(self, losses: Losses) -> Tensor:
        """Back-propagate and clip over all parameters together (detail C11); the norm before clipping."""
        self.optimizer.zero_grad()
        losses.total.backward()
        return self.optimizer.clip(self.config.max_grad_norm)

    def sample_size(self, batch: Batch) -> float:
        """Return the share of a batch that still counts under the importance ratio."""
        with torch.no_grad():
            log_ratio = self.policy.evaluate(batch).log_prob - batch.log_prob
        counted = log_ratio.flatten() if batch.valid is None else log_ratio[batch.valid]
        return float(effective_sample_size(counted.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)))

    def copy(self) -> Callable[[], None] | None:
        """Puts weights and optimiser memory back as they are now; None if the model is too large for a second copy."""
        parameters = self.optimizer.parameters
        if sum(p.numel() for p in parameters) > LARGEST_ROLLBACK:
            return None
        memory = {name: x.clone() for name, x in self.optimizer.tensors().items()}
        weights = [p.detach().clone() for p in parameters]

        def put_back() -> None:
            with torch.no_grad():
                for parameter, kept in zip(parameters, weights, strict=True):
                    parameter.copy_(kept)
            self.optimizer.load(memory)

        return put_back


def _ratio_error(log_ratio: Tensor, valid: Tensor | None) -> float:
    counted = log_ratio if valid is None else log_ratio[valid]
    return float(counted.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT).expm1().abs().max())
