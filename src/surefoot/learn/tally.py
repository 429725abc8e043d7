"""Numbers of an update as they come, and the report they add up to. Reading them costs once, at the end."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from surefoot.core.divergence import k1, k3
from surefoot.core.losses import LOG_RATIO_LIMIT, Losses
from surefoot.learn.report import EpochReport


@dataclass(slots=True)
class Tally:
    """One entry per gradient step; tensors are only kept, not read, until `table` is asked for."""

    log_ratio: list[Tensor] = field(default_factory=list[Tensor])
    parts: list[Tensor] = field(default_factory=list[Tensor])
    """policy, value, entropy, total, gradient norm, raw advantage std, KL to the reference."""
    epoch: list[int] = field(default_factory=list[int])

    def add(self, epoch: int, losses: Losses, valid: Tensor | None, grad_norm: Tensor, advantage_std: Tensor) -> None:
        """Remember one gradient step."""
        self.log_ratio.append(losses.log_ratio.flatten() if valid is None else losses.log_ratio[valid])
        reference = losses.kl_to_reference
        scalars = [losses.policy, losses.value, losses.entropy, losses.total, grad_norm, advantage_std]
        scalars.append(torch.zeros_like(losses.policy) if reference is None else reference)
        self.parts.append(torch.stack([x.detach() for x in scalars]))
        self.epoch.append(epoch)

    def table(self, *, clip: float) -> Table:
        """Each number for each of the K gradient steps, on the CPU in float64."""
        if not self.epoch:
            return Table(np.zeros(0, np.int64), np.zeros((0, len(COLUMNS))))
        lengths = torch.tensor([len(x) for x in self.log_ratio])
        log_ratio = torch.cat(self.log_ratio).cpu().double()
        bounded = log_ratio.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
        outside = (bounded.expm1().abs() > clip).double()
        clamped = (log_ratio.abs() > LOG_RATIO_LIMIT).double()
        each = torch.stack([k3(bounded), k1(bounded), outside, clamped], dim=1)
        means = torch.segment_reduce(each, "mean", lengths=lengths, axis=0)
        rows = torch.cat([torch.stack(self.parts).cpu().double(), means], dim=1).numpy()
        return Table(np.array(self.epoch), rows)


COLUMNS = (
    *("policy_loss", "value_loss", "entropy", "loss", "grad_norm", "advantage_std", "kl_to_reference"),
    *("approx_kl", "kl_divergence", "clip_fraction", "clamped_fraction"),
)


@dataclass(frozen=True, slots=True)
class Table:
    """The numbers of K gradient steps, whichever implementation took them."""

    epoch: np.ndarray
    """[K]: which pass each step belongs to."""
    rows: np.ndarray
    """[K, 11] float64, by the names in COLUMNS."""

    def column(self, name: str) -> np.ndarray:
        """[K]: one number of each step."""
        return self.rows[:, COLUMNS.index(name)]

    def averages(self) -> dict[str, Any]:
        """Means and extremes over the gradient steps, by the report's names."""
        steps = len(self.epoch)
        if not steps:
            return {}
        starts = np.flatnonzero(np.concatenate(([True], self.epoch[1:] != self.epoch[:-1])))
        counts = np.diff(np.append(starts, steps))
        sums = np.add.reduceat(self.rows, starts, axis=0)
        mean = dict(zip(COLUMNS, (sums.sum(axis=0) / steps).tolist(), strict=True))
        highest = dict(zip(COLUMNS, self.rows.max(axis=0).tolist(), strict=True))
        spread, off = self.column("advantage_std"), self.column("entropy") - mean["entropy"]
        del mean["advantage_std"]
        each = zip(self.epoch[starts].tolist(), counts.tolist(), (sums / counts[:, None]).tolist(), strict=True)
        return {
            **mean,
            "approx_kl_max": highest["approx_kl"],
            "clip_fraction_max": highest["clip_fraction"],
            "grad_norm_max": highest["grad_norm"],
            "entropy_std": math.sqrt(float(off @ off) / steps),
            "advantage_min_std": float(spread.min()),
            "zero_std_minibatches": steps - int(np.count_nonzero(spread)),
            "minibatches": steps,
            "epochs": tuple([_epoch(*one) for one in each]),
        }


def _epoch(number: int, steps: int, mean: list[float]) -> EpochReport:
    policy, value, entropy, loss, norm, _, _, kl, _, clipped, _ = mean
    return EpochReport(number, steps, policy, value, entropy, loss, kl, clipped, norm)
