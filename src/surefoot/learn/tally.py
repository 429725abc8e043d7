"""Numbers of an update as they come, and the report they add up to. Reading them costs once, at the end."""

from __future__ import annotations

from dataclasses import dataclass, field

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

    def table(self, *, clip: float) -> dict[str, Tensor]:
        """{name: [K]}: each number for each of the K gradient steps, on the CPU in float64."""
        lengths = torch.tensor([len(x) for x in self.log_ratio])
        log_ratio = torch.cat(self.log_ratio).cpu().double()
        bounded = log_ratio.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
        outside = (bounded.expm1().abs() > clip).double()
        clamped = (log_ratio.abs() > LOG_RATIO_LIMIT).double()
        each = torch.stack([k3(bounded), k1(bounded), outside, clamped], dim=1)
        means = torch.segment_reduce(each, "mean", lengths=lengths, axis=0)
        names = ("policy_loss", "value_loss", "entropy", "loss", "grad_norm", "advantage_std", "kl_to_reference")
        parts = torch.stack(self.parts).cpu().double()
        table = {name: parts[:, i] for i, name in enumerate(names)}
        for i, name in enumerate(("approx_kl", "kl_divergence", "clip_fraction", "clamped_fraction")):
            table[name] = means[:, i]
        return table

    def epochs(self, table: dict[str, Tensor]) -> tuple[EpochReport, ...]:
        """The same, epoch by epoch."""
        number = torch.tensor(self.epoch)
        reports: list[EpochReport] = []
        for epoch in sorted(set(self.epoch)):
            rows = number == epoch
            mean = {name: float(column[rows].mean()) for name, column in table.items()}
            reports.append(
                EpochReport(
                    epoch=epoch,
                    minibatches=int(rows.sum()),
                    policy_loss=mean["policy_loss"],
                    value_loss=mean["value_loss"],
                    entropy=mean["entropy"],
                    loss=mean["loss"],
                    approx_kl=mean["approx_kl"],
                    clip_fraction=mean["clip_fraction"],
                    grad_norm=mean["grad_norm"],
                )
            )
        return tuple(reports)
