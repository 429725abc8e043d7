"""Estimators of the KL divergence from the log-probs of sampled actions (Schulman 2020: k1, k3)."""

from __future__ import annotations

from torch import Tensor


def k1(log_ratio: Tensor) -> Tensor:
    """Return -log r per sample: unbiased but signed, so a mean near zero does not mean that the policies agree."""
    return -log_ratio


def k3(log_ratio: Tensor) -> Tensor:
    """Return (r - 1) - log r per sample: unbiased and never negative, so it can be compared with a threshold."""
    return log_ratio.expm1() - log_ratio


def effective_sample_size(log_ratio: Tensor) -> Tensor:
    """Return (Σ r)² / (n Σ r²), in (0, 1]: the share of samples that is effective under these importance ratios."""
    # Divided by the largest ratio first, which cancels: exp of a large log-ratio overflows.
    weight = (log_ratio - log_ratio.max()).exp()
    return weight.sum().square() / (weight.numel() * weight.square().sum())
