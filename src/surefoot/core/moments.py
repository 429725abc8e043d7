"""Standardising, correlating, explaining: second moments of a rollout."""

from __future__ import annotations

import torch
from torch import Tensor

from surefoot.core.masked import masked_mean, masked_moments


def spread(x: Tensor, valid: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation over the valid entries; exactly 0 if they only differ by rounding.

    That is: std < 1e-6 · max(1, |mean|). Fewer than two valid entries do not vary either.
    """
    mean, std = masked_moments(x, valid)
    return mean, torch.where(std < 1e-6 * mean.abs().clamp(min=1.0), torch.zeros_like(std), std)


def standardize(advantage: Tensor, valid: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """(A - mean) / (std + 1e-8) over the valid entries, and the std it was divided by.

    Where the advantages do not vary the result is all zeros: dividing the rounding noise of equal numbers by itself
    would give a gradient out of nothing (64 × 0.1 gives |z| up to 0.43).
    """
    mean, std = spread(advantage, valid)
    return torch.where(std > 0, (advantage - mean) / (std + 1e-8), torch.zeros_like(advantage)), std


def explained_variance(value: Tensor, target: Tensor, valid: Tensor | None = None) -> Tensor:
    """1 - Var[target - value] / Var[target]; 1 is perfect, 0 as good as a constant, 0 also if targets do not vary."""
    _, spread = masked_moments(target, valid)
    _, error = masked_moments(target - value, valid)
    varies = spread > 1e-12
    return torch.where(varies, 1.0 - (error / spread.clamp(min=1e-12)).square(), torch.zeros_like(spread))


def correlation(x: Tensor, y: Tensor, valid: Tensor | None = None) -> Tensor:
    """Pearson's r over the valid entries; 0 if either does not vary."""
    x_mean, x_std = masked_moments(x, valid)
    y_mean, y_std = masked_moments(y, valid)
    covariance = masked_mean((x - x_mean) * (y - y_mean), valid)
    scale = x_std * y_std
    return torch.where(scale > 1e-12, covariance / scale.clamp(min=1e-12), torch.zeros_like(scale)).clamp(-1.0, 1.0)
