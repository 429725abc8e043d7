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
            return Table(np.zeros(0, np.int64), {})
        lengths = torch.tensor([len(x) for x in self.log_ratio])
        log_ratio = torch.cat(self.log_ratio).cpu().double()
        bounded = log_ratio.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
        outside = (bounded.expm1().abs() > clip).double()
        clamped = (log_ratio.abs() > LOG_RATIO_LIMIT).double()
        each = torch.stack([k3(bounded), k1(bounded), outside, clamped], dim=1)
        means = torch.segment_reduce(each, "mean", lengths=lengths, axis=0)
        rows = torch.cat([torch.stack(self.parts).cpu().double(), means], dim=1).numpy()
        return Table(np.array(self.epoch), dict(zip(COLUMNS, rows.T, strict=True)))


COLUMNS = (
    *("policy_loss", "value_loss", "entropy", "loss", "grad_norm", "advantage_std", "kl_to_reference"),
    *("approx_kl", "kl_divergence", "clip_fraction", "clamped_fraction"),
)


@dataclass(frozen=True, slots=True)
class Table:
    """The numbers of K gradient steps, whichever implementation took them."""

    epoch: np.ndarray
    """[K]: which pass each step belongs to."""
    columns: dict[str, np.ndarray]
    """{name: [K]}, by the names in COLUMNS."""

    def averages(self) -> dict[str, Any]:
        """Means and extremes over the gradient steps, by the report's names."""
        if not len(self.epoch):
            return {}
        of = self.columns
        return {
            **{name: float(column.mean()) for name, column in of.items() if name != "advantage_std"},
            "approx_kl_max": float(of["approx_kl"].max()),
            "clip_fraction_max": float(of["clip_fraction"].max()),
            "grad_norm_max": float(of["grad_norm"].max()),
            "entropy_std": float(of["entropy"].std()),
            "advantage_min_std": float(of["advantage_std"].min()),
            "zero_std_minibatches": int((of["advantage_std"] == 0).sum()),
            "minibatches": len(self.epoch),
            "epochs": self._epochs(),
        }

    def _epochs(self) -> tuple[EpochReport, ...]:
        """The same, epoch by epoch."""
        names = ("policy_loss", "value_loss", "entropy", "loss", "approx_kl", "clip_fraction", "grad_norm")
        numbers, first = np.unique(self.epoch, return_index=True)
        counts = np.diff(first, append=len(self.epoch))
        means = {name: np.add.reduceat(self.columns[name], first) / counts for name in names}
        return tuple(
            EpochReport(
                epoch=int(epoch), minibatches=int(counts[i]), **{name: float(mean[i]) for name, mean in means.items()}
            )
            for i, epoch in enumerate(numbers)
        )
