"""Running mean and variance of observations, inside the policy so that they are saved and exported with it."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn


class Normalizer(nn.Module):
    """x ↦ clip((x - mean) / std, ±clip), with statistics in float64 that change only in `update` and `merge`.

    They are frozen from collecting to the end of the update, or the first ratio would not be 1. Rows that are not finite
    are skipped and counted: one NaN in a running mean never leaves it.
    """

    mean: Tensor
    var: Tensor
    count: Tensor
    rejected: Tensor
    _shift: Tensor
    _scale: Tensor

    def __init__(self, size: int, *, clip: float = 10.0) -> None:
        super().__init__()
        self.clip = clip
        self.register_buffer("mean", torch.zeros(size, dtype=torch.float64))
        self.register_buffer("var", torch.ones(size, dtype=torch.float64))
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))
        self.register_buffer("rejected", torch.zeros((), dtype=torch.int64))
        self.register_buffer("_shift", torch.zeros(size), persistent=False)
        self.register_buffer("_scale", torch.ones(size), persistent=False)
        self.register_load_state_dict_post_hook(_derive_after_loading)

    def forward(self, x: Tensor) -> Tensor:
        shifted = x - self._shift
        if x.requires_grad:
            return (shifted * self._scale).clamp(-self.clip, self.clip)
        # In place: for wide observations new memory takes longer than the arithmetic.
        return shifted.mul_(self._scale).clamp_(-self.clip, self.clip)

    def update(self, rows: np.ndarray) -> None:
        """Merge the statistics of `rows` ([M, size]) into the running ones (Chan et al. 1979)."""
        rows = np.asarray(rows, dtype=np.float64)
        finite = np.isfinite(rows).all(axis=1)
        if not finite.all():
            self.rejected += int((~finite).sum())
            rows = rows[finite]
        if len(rows) == 0:
            return
        self.merge(torch.from_numpy(rows.mean(axis=0)), torch.from_numpy(rows.var(axis=0)), float(len(rows)))

    def merge(self, mean: Tensor, var: Tensor, count: float) -> None:
        """Merge in `count` rows (at least one) with this mean and variance."""
        mean, var = mean.to(self.mean.device), var.to(self.var.device)
        total = self.count + count
        delta = mean - self.mean
        squares = self.var * self.count + var * count + delta.square() * (self.count * count / total)
        self.mean += delta * (count / total)
        self.var.copy_(squares / total)
        self.count.copy_(total)
        self.derive()

    def rows(self) -> tuple[Tensor, Tensor]:
        """Return the shift and the scale of `forward`, for the kernel."""
        return self._shift, self._scale

    def derive(self) -> None:
        """Compute shift and scale of `forward` from the statistics."""
        self._shift.copy_(self.mean)
        # A floor of 1e-8: rounding noise of a constant feature must not be scaled up.
        self._scale.copy_(self.var.clamp(min=1e-8).rsqrt())


def _derive_after_loading(module: nn.Module, keys: object) -> None:
    assert isinstance(module, Normalizer)
    module.derive()
