"""Collects the numbers of each gradient step and averages them for the report."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from surefoot.core.batch import Batch
from surefoot.core.divergence import k1, k3
from surefoot.core.losses import LOG_RATIO_LIMIT, Losses
from surefoot.core.masked import masked_mean, masked_moments
from surefoot.core.moments import correlation, explained_variance
from surefoot.data.rollout import Rollout
from surefoot.learn.report import EpochReport


def advantage_error(batch: Any) -> float:
    """Return the largest |target - value - advantage| of a batch, as a share of its largest target and advantage.

    A target is a value plus its advantage by definition; if not, one of them belongs to another step or was changed.
    """
    off, size = batch.target - batch.value - batch.advantage, abs(batch.target) + abs(batch.advantage)
    if batch.valid is not None:
        off, size = off[batch.valid], size[batch.valid]
    return float(abs(off).max()) / max(float(size.max()), 1e-12) if len(off) else 0.0


@dataclass(slots=True)
class Tally:
    """One entry per gradient step. Tensors are read only by `table`, so that a GPU is not synchronised at every step."""

    log_ratio: list[Tensor] = field(default_factory=list[Tensor])
    parts: list[Tensor] = field(default_factory=list[Tensor])
    """policy, value, entropy, total, gradient norm, raw advantage std, KL to the reference."""
    epoch: list[int] = field(default_factory=list[int])

    def add(self, epoch: int, losses: Losses, valid: Tensor | None, grad_norm: Tensor, advantage_std: Tensor) -> None:
        self.log_ratio.append(losses.log_ratio.flatten() if valid is None else losses.log_ratio[valid])
        reference = losses.kl_to_reference
        scalars = [losses.policy, losses.value, losses.entropy, losses.total, grad_norm, advantage_std]
        scalars.append(torch.zeros_like(losses.policy) if reference is None else reference)
        self.parts.append(torch.stack([x.detach() for x in scalars]))
        self.epoch.append(epoch)

    def table(self, *, clip: float) -> Table:
        """Return all numbers of the K gradient steps, on the CPU in float64."""
        if not self.epoch:
            return Table(np.zeros(0, np.int64), np.zeros((0, len(COLUMNS))))
        # One pass over all steps at the end: minibatches may differ in length, hence segments.
        lengths = torch.tensor([len(x) for x in self.log_ratio])
        log_ratio = torch.cat(self.log_ratio).cpu().double()
        bounded = log_ratio.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
        outside = (bounded.expm1().abs() > clip).double()
        clamped = (log_ratio.abs() > LOG_RATIO_LIMIT).double()
        each = torch.stack([k3(bounded), k1(bounded), outside, clamped], dim=1)
        means = torch.segment_reduce(each, "mean", lengths=lengths, axis=0)
        rows = torch.cat([torch.stack(self.parts).cpu().double(), means], dim=1).numpy()
        return Table(np.array(self.epoch), rows)


# The order is that of the kernel's table (native/src/learn.inc); a test compares the two.
COLUMNS = (
    *("policy_loss", "value_loss", "entropy", "loss", "grad_norm", "advantage_std", "kl_to_reference"),
    *("approx_kl", "kl_divergence", "clip_fraction", "clamped_fraction"),
)
_EPOCH_COLUMNS = [COLUMNS.index(name) for name in EpochReport._fields[2:]]


@dataclass(frozen=True, slots=True)
class Table:
    """The numbers of K gradient steps, of either implementation."""

    epoch: np.ndarray
    """[K]: the epoch of each step."""
    rows: np.ndarray
    """[K, 11] float64, columns as in COLUMNS."""

    def column(self, name: str) -> np.ndarray:
        """Return one number of each step, [K]."""
        return self.rows[:, COLUMNS.index(name)]

    def averages(self) -> dict[str, Any]:
        """Return means and extremes over the gradient steps, by the names of `UpdateReport`."""
        steps = len(self.epoch)
        if not steps:
            return {}
        number = self.epoch.tolist()
        # Sums per epoch first, then over epochs: the order of summation is part of the golden digits.
        starts = [k for k in range(steps) if k == 0 or number[k] != number[k - 1]]
        sums = np.add.reduceat(self.rows, starts, axis=0)
        mean = dict(zip(COLUMNS, (np.add.reduce(sums) / steps).tolist(), strict=True))
        most = dict(zip(COLUMNS, np.maximum.reduce(self.rows).tolist(), strict=True))
        off, spread = self.column("entropy") - mean["entropy"], self.column("advantage_std").tolist()
        del mean["advantage_std"]  # the report has that of the rollout, from `describe`
        ends = zip(starts, [*starts[1:], steps], sums[:, _EPOCH_COLUMNS].tolist(), strict=True)
        return {
            **mean,
            "approx_kl_max": most["approx_kl"],
            "clip_fraction_max": most["clip_fraction"],
            "grad_norm_max": most["grad_norm"],
            "entropy_std": math.sqrt(float(off @ off) / steps),
            "advantage_min_std": min(spread),
            "zero_std_minibatches": spread.count(0.0),
            "clipped_minibatches": int(np.count_nonzero(self.column("clip_fraction"))),
            "minibatches": steps,
            "gradient_steps": self,
            "epochs": tuple([EpochReport(number[a], b - a, *[x / (b - a) for x in each]) for a, b, each in ends]),
        }


@dataclass(slots=True)
class GradientSteps:
    """The result of the gradient steps of one update."""

    table: Table
    first_ratio_error: float = 0.0
    stopped_early: bool = False
    bad_steps: int = 0
    rolled_back: bool = False

    @property
    def nothing_learned(self) -> str | None:
        """Return why no gradient step was taken, or None if one was."""
        if len(self.table.epoch):
            return None
        if self.stopped_early:
            return "the policy was beyond the target KL before the first step"
        return "no gradient step was finite"


def describe(batch: Batch, rollout: Rollout, valid: np.ndarray) -> dict[str, Any]:
    """Return moments of advantages, rewards, values and targets, by the names of `UpdateReport`."""
    # Not batch.advantage: the kernel reports target - value too, and the two differ by a rounding.
    advantage = batch.target - batch.value
    mean, std = masked_moments(advantage, batch.valid)
    target_mean, target_std = masked_moments(batch.target, batch.valid)
    rewards = rollout.reward[valid]
    reward = torch.from_numpy(rewards.astype(np.float32)).to(batch.value.device)
    flat = advantage.flatten() if batch.valid is None else advantage[batch.valid]
    return {
        "explained_variance": float(explained_variance(batch.value, batch.target, batch.valid)),
        "advantage_mean": float(mean),
        "advantage_std": float(std),
        "reward_advantage_corr": float(correlation(reward, flat)),
        "reward_mean": float(rewards.mean()),
        "reward_std": float(rewards.std()),
        "value_mean": float(masked_mean(batch.value, batch.valid)),
        "target_mean": float(target_mean),
        "target_std": float(target_std),
    }
