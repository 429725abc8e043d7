"""Means and spreads over the entries that count. `valid` None means that all do."""

from __future__ import annotations

import torch
from torch import Tensor


def masked_mean(x: Tensor, valid: Tensor | None) -> Tensor:
    """Mean of `x` where `valid`; 0 if nothing is valid (a mean of nothing must not poison a loss with NaN)."""
    if valid is None:
        return x.mean()
    weight = valid.to(x.dtype)
    # where, not a product: 0 · NaN of a padded entry is NaN.
    return x.where(valid, x.new_zeros(())).sum() / weight.sum().clamp(min=1.0)


def masked_moments(x: Tensor, valid: Tensor | None) -> tuple[Tensor, Tensor]:
    """Mean and population standard deviation of `x` where `valid`."""
    # Population variance: with N-1 a single valid step would divide by zero (sb3#325).
    if valid is None and x.numel():
        std, mean = torch.std_mean(x, correction=0)
        return mean, std
    mean = masked_mean(x, valid)
    return mean, masked_mean((x - mean).square(), valid).sqrt()
