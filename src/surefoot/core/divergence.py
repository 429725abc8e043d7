"""How far two policies are apart, from the log-probs of sampled actions (Schulman 2020: k1, k3)."""

from __future__ import annotations

from torch import Tensor


def k1(log_ratio: Tensor) -> Tensor:
    """-log r per sample: unbiased, signed, so a mean near zero does not mean that nothing moved."""
    return -log_ratio


def k3(log_ratio: Tensor) -> Tensor:
    """(r - 1) - log r per sample: unbiased and never negative, so a threshold on it means something."""
    return log_ratio.expm1() - log_ratio


def effective_sample_size(log_ratio: Tensor) -> Tensor:
    """(Σ r)² / (n Σ r²), in (0, 1]: the share of samples that still counts under these importance ratios."""
    weight = (log_ratio - log_ratio.max()).exp()
    return weight.sum().square() / (weight.numel() * weight.square().sum())
