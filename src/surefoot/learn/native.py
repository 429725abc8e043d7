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
from surefoot.learn.optimizer import Optimizer
from surefoot.learn.rate_control import Knobs
from surefoot.learn.report_builder import COLUMNS, Table
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.kernel_layout import KernelNet

_OPTIMIZER = {"adam": 0, "adamw": 1, "sgd": 2, "rmsprop": 3}
_SLOTS = {"adam": ("exp_avg", "exp_avg_sq"), "sgd": ("momentum", None), "rmsprop": ("square_avg", "momentum")}
_SLOTS["adamw"] = _SLOTS["adam"]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What the kernel says of an update."""

    table: Table
    stopped: bool
    bad_steps: int
    bad_in_a_row: int
    rolled_back: bool
    first_ratio_error: float


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
        whole = {n: np.ascontiguousarray(getattr(rollout, n), np.float32) for n in ("reward", "value", "next_value")}
        advantage, target = np.empty_like(whole["reward"]), np.empty_like(whole["reward"])
        flags = (np.ascontiguousarray(x) for x in (rollout.terminated, rollout.truncated, valid))
        kernel, config = self.net.kernel, self.config
        kernel.gae(steps, streams, *whole.values(), *flags, config.gamma, config.lam, advantage, target)
        reward, value, target = row(whole["reward"]), row(whole["value"]), row(target)
        return NativeBatch(
            features=self._features({name: row(x, x.dtype) for name, x in rollout.obs.items()}),
            action=row(rollout.action, np.int64 if self.net.discrete else np.float32),
            log_prob=row(rollout.log_prob),
            value=value,
            advantage=row(advantage),
            target=target,
            ref_log_prob=None if rollout.ref_log_prob is None else row(rollout.ref_log_prob),
            mask=None if rollout.action_mask is None else row(rollout.action_mask, np.uint8),
            described=dict(zip(_DESCRIBED, kernel.describe(len(value), reward, value, target), strict=True)),
        )

    def _features(self, obs: dict[str, np.ndarray]) -> np.ndarray:
        """[samples, inputs]: laid flat, scaled and normalised by the policy's own torso, once for all epochs."""
        flatten = self.net.flatten
        if flatten.normalizer is None:
            return flatten.rows(obs)
        with torch.no_grad():
            return flatten({name: torch.from_numpy(x) for name, x in obs.items()}).contiguous().numpy()

    def keep(self) -> None:
        """Remember weights and optimiser memory, to be able to `restore` them."""
        self.net.point(self._memory)
        self.net.kernel.net_keep(self.net.net)

    def restore(self) -> None:
        """Put back what `keep` remembered."""
        self.net.kernel.net_restore(self.net.net)

    def learn(self, batch: NativeBatch, generator: torch.Generator, knobs: Knobs, *, bad_in_a_row: int) -> Said:
        """All epochs; `keep` comes before it, as it also looks up where everything is."""
        config, samples = self.config, len(batch.value)
        advantage = batch.advantage
        if config.normalize_advantage == "batch":
            advantage = _standardized(advantage)
        if self._cut is None or self._cut.samples != samples:
            self._cut = _Cut(config, samples)
        cut, sizes = self._cut, self._cut.sizes
        before = generator.get_state()
        for row in cut.rows:
            torch.randperm(samples, generator=generator, out=row)
        table, epoch_of = (
            np.empty((config.epochs * len(sizes), len(COLUMNS))),
            np.empty(config.epochs * len(sizes), np.int32),
        )
        limit = -1.0 if config.target_kl is None else config.kl_stop_factor * config.target_kl
        steps, stopped, bad_steps, bad_in_a_row, rolled_back, begun, error = self.net.kernel.net_learn(
            self.net.net,
            samples,
            batch.features,
            batch.action,
            batch.log_prob,
            batch.value,
            advantage,
            batch.target,
            batch.ref_log_prob,
            batch.mask,
            cut.order,
            sizes,
            config.epochs,
            (
                knobs.clip,
                -1.0 if config.value_clip is None else config.value_clip,
                config.vf_coef,
                knobs.ent_coef,
                config.kl_coef,
                config.max_grad_norm,
                limit,
                knobs.lr,
                config.weight_decay,
                config.adam_eps,
                config.momentum,
                -1.0 if config.dual_clip is None else config.dual_clip,
            ),
            int(config.normalize_advantage == "minibatch"),
            _OPTIMIZER[config.optimizer],
            bad_in_a_row,
            table,
            epoch_of,
        )
        if begun < config.epochs:  # As many draws as the epochs that began: the torch path draws one at a time.
            generator.set_state(before)
            for _ in range(begun):
                torch.randperm(samples, generator=generator)
        return Said(
            table=Table(epoch_of[:steps], table[:steps]),
            stopped=bool(stopped),
            bad_steps=bad_steps,
            bad_in_a_row=bad_in_a_row,
            rolled_back=bool(rolled_back),
            first_ratio_error=error,
        )

    def sample_size(self, batch: NativeBatch) -> float:
        """The share of the samples that still counts under the policy of now."""
        log_prob = np.empty_like(batch.log_prob)
        self.net.point(self._memory)
        self.net.kernel.net_log_probs(self.net.net, len(log_prob), batch.features, batch.action, batch.mask, log_prob)
        ratio = np.clip(log_prob - batch.log_prob, -LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
        return float(effective_sample_size(torch.from_numpy(ratio)))

    def _memory(self) -> dict[int, tuple[int, int, int]]:
        """Addresses of the optimiser's memory, by the id of the parameter it belongs to."""
        first, second = _SLOTS[self.config.optimizer]
        slots, steps = self.optimizer.slots, self.optimizer.steps
        return {
            id(p): (
                slots[first][i].data_ptr(),
                0 if second is None else slots[second][i].data_ptr(),
                steps[i].data_ptr(),
            )
            for i, p in enumerate(self.optimizer.parameters)
        }


_DESCRIBED = (
    *("advantage_mean", "advantage_std", "reward_advantage_corr", "explained_variance", "reward_mean", "reward_std"),
    *("value_mean", "target_mean", "target_std"),
)


def _standardized(x: np.ndarray) -> np.ndarray:
    """As `core.moments.standardize` does it for a whole batch."""
    mean, std = float(x.mean(dtype=np.float64)), float(x.std(dtype=np.float64))
    if std < 1e-6 * max(1.0, abs(mean)):
        return np.zeros_like(x)
    return ((x - mean) / (std + 1e-8)).astype(np.float32)
