"""Mean and standard deviation over the valid entries; `valid` None means all of them."""

from __future__ import annotations

import torch
from torch import Tensor


def masked_mean(x: Tensor, valid: Tensor | None) -> Tensor:
    """Return the mean of `x` where `valid`; 0 if nothing is valid, so that an empty minibatch adds no NaN to a loss."""
    if valid is None:
        return x.mean()
    weight = valid.to(x.dtype)
    # `where`, not a product: 0 · NaN of a padded entry is NaN.
    return x.where(valid, x.new_zeros(())).sum() / weight.sum().clamp(min=1.0)


def masked_moments(x: Tensor, valid: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the mean and the population standard deviation of `x` where `valid`."""
    # Population variance: with N-1 a single valid step would divide by zero (sb3#325).
    if valid is None and x.numel():
        std, mean = torch.std_mean(x, correction=0)
        return mean, std
    mean = masked_mean(x, valid)
    return mean, masked_mean((x - mean).square(), valid).sqrt()
