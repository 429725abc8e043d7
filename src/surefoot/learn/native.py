"""`Learner.update` by the kernel: GAE, all epochs, all minibatches, losses, gradients and steps, on torch's own memory.

The torch path is the definition; tests hold this one to it. Minibatches are the same ones, from the same generator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from surefoot.core.divergence import effective_sample_size
from surefoot.core.losses import LOG_RATIO_LIMIT
from surefoot.data.rollout import Rollout
from surefoot.learn.config import PPOConfig
from surefoot.learn.minibatches import minibatch_size_for, split_sizes
from surefoot.learn.optimizer import ADAM_BETAS, RMSPROP_ALPHA, SLOTS, Optimizer
from surefoot.learn.rate_control import Knobs
from surefoot.learn.report_builder import COLUMNS, GradientSteps, Table
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.kernel_layout import KernelNet


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeBatch:
    """What the kernel learns from: plain arrays, one row a step, only steps that count."""

    features: np.ndarray
    action: np.ndarray
    log_prob: np.ndarray
    value: np.ndarray
    advantage: np.ndarray
    target: np.ndarray
    ref_log_prob: np.ndarray | None
    mask: np.ndarray | None
    described: dict[str, float]
    """What the rollout itself was like, by the report's names."""


class _Cut:
    """How so many samples are cut into minibatches, and the memory their order is drawn into: often the same each time."""

    def __init__(self, config: PPOConfig, samples: int) -> None:
        self.samples = samples
        self.sizes = np.array(
            split_sizes(samples, minibatch_size_for(samples, config.minibatch_size, config.minibatches)[0]),
            dtype=np.int64,
        )
        drawn = torch.empty((config.epochs, samples), dtype=torch.int64)
        self.rows, self.order = list(drawn), drawn.numpy()


class NativeUpdate:
    """The kernel's side of a learner: it owns no weights, only the knowledge of where they are."""

    def __init__(self, policy: ActorCritic, optimizer: Optimizer, config: PPOConfig) -> None:
        self.net = KernelNet(policy)
        self.optimizer, self.config = optimizer, config
        self._cut: _Cut | None = None

    def prepare(self, rollout: Rollout, valid: np.ndarray) -> NativeBatch:
        """Advantages and targets, and every array as the kernel reads it."""
        keep = None if np.count_nonzero(valid) == valid.size else np.flatnonzero(valid)

        def row(x: np.ndarray, dtype: Any = np.float32) -> np.ndarray:
            flat = x.reshape(-1, *x.shape[2:])
            return np.ascontiguousarray(flat if keep is None else flat[keep], dtype=dtype)

        steps, streams = rollout.reward.shape
        whole_reward = np.ascontiguousarray(rollout.reward, np.float32)
        whole_value = np.ascontiguousarray(rollout.value, np.float32)
        advantage, target = np.empty_like(whole_reward), np.empty_like(whole_reward)
        kernel = self.net.kernel
        kernel.gae(
            steps=steps,
            streams=streams,
            gamma=self.config.gamma,
            lam=self.config.lam,
            reward=whole_reward,
            value=whole_value,
            next_value=np.ascontiguousarray(rollout.next_value, np.float32),
            terminated=np.ascontiguousarray(rollout.terminated),
            truncated=np.ascontiguousarray(rollout.truncated),
            valid=np.ascontiguousarray(valid),
            advantage=advantage,
            target=target,
        )
        reward, value, target = row(whole_reward), row(whole_value), row(target)
        # Laid flat, scaled and normalised by the policy's own torso, once for all epochs.
        flatten, obs = self.net.flatten, {name: row(x, x.dtype) for name, x in rollout.obs.items()}
        if flatten.normalizer is None:
            features = flatten.rows(obs)
        else:
            with torch.no_grad():
                features = flatten({name: torch.from_numpy(x) for name, x in obs.items()}).contiguous().numpy()
        return NativeBatch(
            features=features,
            action=row(rollout.action, np.int64 if self.net.discrete else np.float32),
            log_prob=row(rollout.log_prob),
            value=value,
            advantage=row(advantage),
            target=target,
            ref_log_prob=None if rollout.ref_log_prob is None else row(rollout.ref_log_prob),
            mask=None if rollout.action_mask is None else row(rollout.action_mask, np.uint8),
            described=kernel.rollout_statistics(len(value), reward, value, target),
        )

    def keep(self) -> None:
        """Remember weights and optimiser memory, to be able to `restore` them."""
        self.net.point(self._memory)
        self.net.kernel.net_save(self.net.net)

    def restore(self) -> None:
        """Put back what `keep` remembered."""
        self.net.kernel.net_restore(self.net.net)

    def learn(
        self, batch: NativeBatch, generator: torch.Generator, knobs: Knobs, *, bad_in_a_row: int, max_bad_steps: int
    ) -> tuple[GradientSteps, int]:
        """Run all epochs; also return the number of non-finite steps in a row at the end.

        Call `keep` before: it also looks up the addresses of all tensors.
        The update stops after `max_bad_steps` non-finite gradient steps in a row, of which `bad_in_a_row` came before it.
        """
        config, samples = self.config, len(batch.value)
        advantage = batch.advantage
        if config.normalize_advantage == "batch":
            # As `core.moments.standardize` does it for a whole batch.
            mean, std = float(advantage.mean(dtype=np.float64)), float(advantage.std(dtype=np.float64))
            spread = std >= 1e-6 * max(1.0, abs(mean))
            advantage = ((advantage - mean) / (std + 1e-8)).astype(np.float32) if spread else np.zeros_like(advantage)
        if self._cut is None or self._cut.samples != samples:
            self._cut = _Cut(config, samples)
        cut, sizes = self._cut, self._cut.sizes
        before = generator.get_state()
        for row in cut.rows:
            torch.randperm(samples, generator=generator, out=row)
        table = np.empty((config.epochs * len(sizes), len(COLUMNS)))
        epoch_of = np.empty(len(table), np.int32)
        limit = -1.0 if config.target_kl is None else config.kl_stop_factor * config.target_kl
        steps, stopped, bad_steps, bad_in_a_row, rolled_back, begun, error = self.net.kernel.net_learn(
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
            weight_decay=config.weight_decay,
            eps=config.adam_eps,
            momentum=config.momentum,
            beta1=ADAM_BETAS[0],
            beta2=ADAM_BETAS[1],
            alpha=RMSPROP_ALPHA,
            max_bad_steps=max_bad_steps,
            bad_in_a_row=bad_in_a_row,
            features=batch.features,
            action=batch.action,
            log_prob=batch.log_prob,
            value=batch.value,
            advantage=advantage,
            target=batch.target,
            ref_log_prob=batch.ref_log_prob,
            mask=batch.mask,
            order=cut.order,
            sizes=sizes,
            table=table,
            epoch_of=epoch_of,
        )
        if begun < config.epochs:  # As many draws as the epochs that began: the torch path draws one at a time.
            generator.set_state(before)
            for _ in range(begun):
                torch.randperm(samples, generator=generator)
        done = GradientSteps(Table(epoch_of[:steps], table[:steps]), error, bool(stopped), bad_steps, bool(rolled_back))
        return done, bad_in_a_row

    def sample_size(self, batch: NativeBatch) -> float:
        """The share of the samples that still counts under the policy of now."""
        log_prob = np.empty_like(batch.log_prob)
        self.net.point(self._memory)
        self.net.kernel.net_log_probs(self.net.net, len(log_prob), batch.features, batch.action, batch.mask, log_prob)
        ratio = np.clip(log_prob - batch.log_prob, -LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
        return float(effective_sample_size(torch.from_numpy(ratio)))

    def _memory(self) -> dict[int, tuple[int, int, int]]:
        """Addresses of the optimiser's memory, by the id of the parameter it belongs to."""
        first, *rest = SLOTS[self.config.optimizer]  # SGD has one slot, the others two
        slots, steps = self.optimizer.slots, self.optimizer.steps
        return {
            id(p): (
                slots[first][i].data_ptr(),
                slots[rest[0]][i].data_ptr() if rest else 0,
                steps[i].data_ptr(),
            )
            for i, p in enumerate(self.optimizer.parameters)
        }
