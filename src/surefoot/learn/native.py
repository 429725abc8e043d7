"""`Learner.update` in the C kernel: GAE, all epochs, losses, gradients and optimiser steps, on torch's own memory.

The torch path is the definition; tests compare this one with it. Minibatches come from the same generator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from surefoot.core.batch import Batch
from surefoot.core.divergence import effective_sample_size
from surefoot.core.losses import LOG_RATIO_LIMIT
from surefoot.data.rollout import Rollout
from surefoot.learn.config import PPOConfig
from surefoot.learn.minibatches import minibatch_size_for, split_sizes
from surefoot.learn.native_columns import columns_of, memories
from surefoot.learn.optimizer import ADAM_BETAS, RMSPROP_ALPHA, SLOTS, Optimizer, critic_of
from surefoot.learn.rate_control import Knobs
from surefoot.learn.report_builder import COLUMNS, GradientSteps, Table
from surefoot.learn.torch_update import BAD_STEPS_BEFORE_ROLLBACK, sample_size_of
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.kernel_layout import KernelNet
from surefoot.nets.kernel_support import why_not


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeBatch:
    """The arrays that the kernel learns from: one row per valid step, with memory one per step."""

    features: np.ndarray
    action: np.ndarray
    log_prob: np.ndarray
    value: np.ndarray
    advantage: np.ndarray
    target: np.ndarray
    ref_log_prob: np.ndarray | None
    mask: np.ndarray | None
    length: int = 1
    """Steps per column: with memory the rows are columns of streams, [T · B], time first."""
    start: np.ndarray | None = None
    valid: np.ndarray | None = None
    """Which rows to learn from; None for all."""
    context: dict[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    """The state that each column begins with, {memory: [B, …]}."""
    by_torch: Batch | None = None
    """With memory: the same streams as torch learns from them."""


class NativeUpdate:
    """The gradient steps of one update in the kernel. It owns no weights: it passes the kernel their addresses."""

    def __init__(
        self, policy: ActorCritic, optimizer: Optimizer, config: PPOConfig, generator: torch.Generator
    ) -> None:
        self.net = KernelNet(policy)
        self._memory: tuple[tuple[Any, ...], tuple[Any, ...]] = (), ()
        """The containers of the optimiser and what was in them when the kernel got the addresses."""
        self._addresses: list[int] = []
        self.optimizer, self.config, self.generator = optimizer, config, generator
        self.bad_in_a_row = 0
        """Non-finite gradient steps since the last finite one."""
        self._order = np.empty((config.epochs, 0), np.int64)
        """[epochs, samples]: buffer for the shuffled order; reused while rollouts have the same size."""
        self._epochs: list[torch.Tensor] = []
        """Its rows."""

    def refresh(self) -> str | None:
        """Make the kernel use the policy and the optimiser as they are now; return why it cannot, or None."""
        if self.net.unchanged() and self.net.kernel.holds(*self._memory) and self._slot_addresses() == self._addresses:
            return None
        policy = self.net.policy
        if (reason := why_not(policy)) is not None:
            return reason
        self.optimizer.follow(policy.parameters(), critic=critic_of(policy, self.config))
        if not self.net.unchanged():
            self.net = KernelNet(policy, self.net.instruction_set)
        self.net.point(self._slots())
        state: dict[str, Any] = vars(self.optimizer)
        containers: list[Any] = [state, *(x for x in state.values() if isinstance(x, dict | list))]
        containers += self.optimizer.slots.values()
        self._memory = tuple(containers), tuple(tuple(x.values() if isinstance(x, dict) else x) for x in containers)
        self._addresses = self._slot_addresses()
        return None

    def _slot_addresses(self) -> list[int]:
        optimizer = self.optimizer
        return [x.data_ptr() for each in (*optimizer.slots.values(), optimizer.steps) for x in each]

    def _slots(self) -> dict[int, tuple[torch.Tensor, ...]]:
        """Return {id of a parameter: its first slot, its second slot (empty if none) and its step count}."""
        first, *more = [self.optimizer.slots[name] for name in SLOTS[self.config.optimizer]]
        second = more[0] if more else [torch.empty(0)] * len(first)
        rows = zip(self.optimizer.parameters, first, second, self.optimizer.steps, strict=True)
        return {id(p): (a, b, step) for p, a, b, step in rows}

    def prepare(self, rollout: Rollout, valid: np.ndarray) -> tuple[NativeBatch, dict[str, Any]]:
        """Return the batch with advantages and targets, and the moments of the rollout for the report."""
        if self.net.policy.sequential:
            columns, moments = columns_of(self.net, self.config, rollout, valid)
            return NativeBatch(**columns), moments
        # Without padding no row is copied by indexing.
        keep = None if np.count_nonzero(valid) == valid.size else np.flatnonzero(valid)

        def row(x: np.ndarray, dtype: Any = np.float32) -> np.ndarray:
            flat = x.reshape(-1, *x.shape[2:])
            return np.ascontiguousarray(flat if keep is None else flat[keep], dtype=dtype)

        steps, streams = rollout.reward.shape
        rewards = np.ascontiguousarray(rollout.reward, np.float32)
        values = np.ascontiguousarray(rollout.value, np.float32)
        advantage, target = np.empty_like(rewards), np.empty_like(rewards)
        kernel = self.net.kernel
        kernel.gae(
            steps=steps,
            streams=streams,
            gamma=self.config.gamma,
            lam=self.config.lam,
            reward=rewards,
            value=values,
            next_value=np.ascontiguousarray(rollout.next_value, np.float32),
            terminated=np.ascontiguousarray(rollout.terminated),
            truncated=np.ascontiguousarray(rollout.truncated),
            valid=np.ascontiguousarray(valid),
            advantage=advantage,
            target=target,
        )
        reward, value, target = row(rewards), row(values), row(target)
        self.net.set_temperature()
        batch = NativeBatch(
            # Flattened, scaled and normalised by the policy's torsos here, once for all epochs.
            features=self.net.features({name: row(x, x.dtype) for name, x in rollout.obs.items()}),
            action=row(rollout.action, np.int64 if self.net.discrete else np.float32),
            log_prob=row(rollout.log_prob),
            value=value,
            advantage=row(advantage),
            target=target,
            ref_log_prob=None if rollout.ref_log_prob is None else row(rollout.ref_log_prob),
            mask=None if rollout.action_mask is None else row(rollout.action_mask, np.uint8),
        )
        return batch, kernel.rollout_statistics(len(value), reward, value, target)

    def copy(self) -> Callable[[], None]:
        """Save weights and optimiser slots in the kernel, and return a function that restores them."""
        self.net.kernel.net_save(self.net.net)
        return lambda: self.net.kernel.net_restore(self.net.net)

    def learn(self, batch: NativeBatch, knobs: Knobs) -> GradientSteps:
        """Run all epochs in one call. Call `refresh` before: it looks up the addresses of all tensors."""
        config, samples = self.config, len(batch.value)
        columns, advantage = samples // batch.length, batch.advantage
        if config.normalize_advantage == "batch":
            # The same thresholds as `core.moments.standardize`, which the torch path calls.
            counted = advantage if batch.valid is None else advantage[batch.valid]
            mean, std = float(counted.mean(dtype=np.float64)), float(counted.std(dtype=np.float64))
            spread = std >= 1e-6 * max(1.0, abs(mean))
            advantage = ((advantage - mean) / (std + 1e-8)).astype(np.float32) if spread else np.zeros_like(advantage)
        size, _ = minibatch_size_for(samples, config.minibatch_size, config.minibatches)
        sizes = split_sizes(columns, max(1, size // batch.length))
        if self._order.shape[1] != columns:
            self._order = np.empty((config.epochs, columns), np.int64)
            self._epochs = [torch.from_numpy(x) for x in self._order]
        before = self.generator.get_state()
        for row in self._epochs:
            torch.randperm(columns, generator=self.generator, out=row)
        table = np.empty((config.epochs * len(sizes), len(COLUMNS)))
        epoch_of = np.empty(len(table), np.int32)
        # The kernel takes negative numbers for settings that are off.
        limit = -1.0 if config.target_kl is None else config.kl_stop_factor * config.target_kl
        steps, stopped, bad_steps, self.bad_in_a_row, rolled_back, begun, error = self.net.kernel.net_learn(
            self.net.net,
            samples=samples,
            minibatches=len(sizes),
            epochs=config.epochs,
            clip=knobs.clip,
            value_clip=-1.0 if config.value_clip is None else config.value_clip,
            dual_clip=-1.0 if config.dual_clip is None else config.dual_clip,
            log_ratio_limit=LOG_RATIO_LIMIT,
            vf_coef=config.vf_coef,
            ent_coef=knobs.ent_coef,
            kl_coef=config.kl_coef,
            kl_limit=limit,
            standardize=config.normalize_advantage == "minibatch",
            max_grad_norm=config.max_grad_norm,
            optimizer=config.optimizer,
            lr=knobs.lr,
            critic_lr_scale=config.critic_lr_scale,
            weight_decay=config.weight_decay,
            eps=config.adam_eps,
            momentum=config.momentum,
            beta1=ADAM_BETAS[0],
            beta2=ADAM_BETAS[1],
            alpha=RMSPROP_ALPHA,
            max_bad_steps=BAD_STEPS_BEFORE_ROLLBACK,
            bad_in_a_row=self.bad_in_a_row,
            features=batch.features,
            action=batch.action,
            log_prob=batch.log_prob,
            value=batch.value,
            advantage=advantage,
            target=batch.target,
            ref_log_prob=batch.ref_log_prob,
            mask=batch.mask,
            **({} if batch.start is None else memories(batch.length, batch.start, batch.valid, batch.context)),
            order=self._order,
            sizes=np.array(sizes, np.int64),
            table=table,
            epoch_of=epoch_of,
        )
        if begun < config.epochs:
            # The torch path draws one epoch at a time: leave the generator where it would be after an early stop.
            self.generator.set_state(before)
            for _ in range(begun):
                torch.randperm(columns, generator=self.generator)
        rows = Table(epoch_of[:steps], table[:steps])
        return GradientSteps(rows, error, bool(stopped), bad_steps, bool(rolled_back))

    def sample_size(self, batch: NativeBatch) -> float:
        """Return the effective sample size under the importance ratio, as a share of the batch."""
        if batch.by_torch is not None:
            return sample_size_of(self.net.policy, batch.by_torch)
        log_prob = np.empty_like(batch.log_prob)
        self.net.kernel.net_log_probs(self.net.net, len(log_prob), batch.features, batch.action, batch.mask, log_prob)
        ratio = np.clip(log_prob - batch.log_prob, -LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
        return float(effective_sample_size(torch.from_numpy(ratio)))
