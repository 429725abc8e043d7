"""Numbers of an update as they come, and the report they add up to. Reading them costs once, at the end."""

from __future__ import annotations

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
        if not len(self.epoch):
            return {}
        mean = dict(zip(COLUMNS, self.rows.mean(axis=0).tolist(), strict=True))
        highest = dict(zip(COLUMNS, self.rows.max(axis=0).tolist(), strict=True))
        del mean["advantage_std"]
        spread = self.column("advantage_std")
        return {
            **mean,
            **{f"{name}_max": highest[name] for name in ("approx_kl", "clip_fraction", "grad_norm")},
            "entropy_std": float(self.column("entropy").std()),
            "advantage_min_std": float(spread.min()),
            "zero_std_minibatches": len(spread) - int(np.count_nonzero(spread)),
            "minibatches": len(self.epoch),
            "epochs": self._epochs(),
        }

    def _epochs(self) -> tuple[EpochReport, ...]:
        """The same, epoch by epoch."""
        names = ("policy_loss", "value_loss", "entropy", "loss", "approx_kl", "clip_fraction", "grad_norm")
        first = np.flatnonzero(np.diff(self.epoch, prepend=-1))
        counts = np.diff(first, append=len(self.epoch))
        means = (np.add.reduceat(self.rows, first, axis=0) / counts[:, None])[:, [COLUMNS.index(n) for n in names]]
        return tuple(
            EpochReport(epoch=epoch, minibatches=count, **dict(zip(names, row, strict=True)))
            for epoch, count, row in zip(self.epoch[first].tolist(), counts.tolist(), means.tolist(), strict=True)
        )
