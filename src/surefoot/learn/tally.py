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
        # Plain lists: for the few dozen rows of an update they are several times as fast as arrays.
        rows, numbers = self.rows.tolist(), self.epoch.tolist()
        columns = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))
        mean = {name: sum(column) / steps for name, column in columns.items() if name != "advantage_std"}
        spread, entropy = columns["advantage_std"], mean["entropy"]
        starts = [i for i in range(steps) if i == 0 or numbers[i] != numbers[i - 1]]
        return {
            **mean,
            "approx_kl_max": max(columns["approx_kl"]),
            "clip_fraction_max": max(columns["clip_fraction"]),
            "grad_norm_max": max(columns["grad_norm"]),
            "entropy_std": math.sqrt(sum((x - entropy) ** 2 for x in columns["entropy"]) / steps),
            "advantage_min_std": min(spread),
            "zero_std_minibatches": spread.count(0.0),
            "minibatches": steps,
            "epochs": tuple(
                _epoch(numbers[begin], rows[begin:end]) for begin, end in zip(starts, [*starts[1:], steps], strict=True)
            ),
        }


def _epoch(number: int, rows: list[list[float]]) -> EpochReport:
    steps = len(rows)
    policy, value, entropy, loss, norm, _, _, kl, _, clipped, _ = (sum(x) / steps for x in zip(*rows, strict=True))
    return EpochReport(
        epoch=number,
        minibatches=steps,
        policy_loss=policy,
        value_loss=value,
        entropy=entropy,
        loss=loss,
        approx_kl=kl,
        clip_fraction=clipped,
        grad_norm=norm,
    )
