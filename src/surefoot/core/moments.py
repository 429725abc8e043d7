"""Second moments of a rollout: standardised advantages, explained variance, correlation."""

from __future__ import annotations

import torch
from torch import Tensor

from surefoot.core.masked import masked_mean, masked_moments


def spread(x: Tensor, valid: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation over the valid entries; the deviation is exactly 0 if it is rounding noise."""
    # 1e-6, relative to the mean: a little above float32's resolution (1.2e-7).
    mean, std = masked_moments(x, valid)
    return mean, torch.where(std < 1e-6 * mean.abs().clamp(min=1.0), torch.zeros_like(std), std)


def standardize(advantage: Tensor, valid: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return (A - mean) / (std + 1e-8) over the valid entries, and the std.

    The result is all zeros if the advantages do not vary: dividing the rounding noise of equal numbers by its own size
    would give a gradient where there is no signal (64 × 0.1 gives |z| up to 0.43).
    """
    mean, std = spread(advantage, valid)
    return torch.where(std > 0, (advantage - mean) / (std + 1e-8), torch.zeros_like(advantage)), std


def explained_variance(value: Tensor, target: Tensor, valid: Tensor | None = None) -> Tensor:
    """Return 1 - Var[target - value] / Var[target]: 1 is perfect, 0 is no better than a constant or constant targets."""
    _, spread = masked_moments(target, valid)
    _, error = masked_moments(target - value, valid)
    # 1e-12 only guards the division.
    varies = spread > 1e-12
    return torch.where(varies, 1.0 - (error / spread.clamp(min=1e-12)).square(), torch.zeros_like(spread))


def correlation(x: Tensor, y: Tensor, valid: Tensor | None = None) -> Tensor:
    """Return Pearson's r over the valid entries; 0 if either side is constant."""
    x_mean, x_std = masked_moments(x, valid)
    y_mean, y_std = masked_moments(y, valid)
    covariance = masked_mean((x - x_mean) * (y - y_mean), valid)
    scale = x_std * y_std
    return torch.where(scale > 1e-12, covariance / scale.clamp(min=1e-12), torch.zeros_like(scale)).clamp(-1.0, 1.0)
