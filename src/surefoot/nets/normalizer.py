"""Running mean and variance of observations, kept inside the policy so that they are saved and shipped with it."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn


class Normalizer(nn.Module):
    """x ↦ clip((x - mean) / std, ±clip), with statistics in float64 that move only when told to.

    Frozen between collecting and the end of the update (`update` is called after it), else the ratio would not start
    at 1. Rows that are not finite are left out and counted: one NaN in a running mean stays there for ever.
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
        return ((x - self._shift) * self._scale).clamp(-self.clip, self.clip)

    def update(self, rows: np.ndarray) -> None:
        """Merge the statistics of `rows` ([M, size]) into the running ones (Chan et al. 1979)."""
        rows = np.asarray(rows, dtype=np.float64)
        finite = np.isfinite(rows).all(axis=1)
        self.rejected += int((~finite).sum())
        rows = rows[finite]
        if len(rows) == 0:
            return
        self.merge(torch.from_numpy(rows.mean(axis=0)), torch.from_numpy(rows.var(axis=0)), float(len(rows)))

    def merge(self, mean: Tensor, var: Tensor, count: float) -> None:
        """Take in `count` more rows, at least one, of which only these are known."""
        mean, var = mean.to(self.mean.device), var.to(self.var.device)
        total = self.count + count
        delta = mean - self.mean
        squares = self.var * self.count + var * count + delta.square() * (self.count * count / total)
        self.mean += delta * (count / total)
        self.var.copy_(squares / total)
        self.count.copy_(total)
        self.derive()

    def addresses(self) -> tuple[int, int, float]:
        """Where what `forward` subtracts and multiplies by lies in memory, and its clip: for the kernel."""
        return self._shift.data_ptr(), self._scale.data_ptr(), self.clip

    def derive(self) -> None:
        """What `forward` uses, from the statistics."""
        self._shift.copy_(self.mean)
        # A floor of 1e-8: a feature that never moved must not be blown up by rounding.
        self._scale.copy_(self.var.clamp(min=1e-8).rsqrt())


def _derive_after_loading(module: nn.Module, keys: object) -> None:
    assert isinstance(module, Normalizer)
    module.derive()
