"""KL estimators against the exact divergence of two Gaussians."""

from __future__ import annotations

import pytest
import torch

from surefoot.core.divergence import effective_sample_size, k1, k3


def test_k3_is_never_negative_and_k1_has_the_sign_of_the_change():
    log_ratio = torch.tensor([-2.0, -0.1, 0.0, 0.1, 2.0])
    assert (k3(log_ratio) >= 0).all()
    assert k3(log_ratio)[2].item() == 0.0
    assert torch.equal(k1(log_ratio), -log_ratio)


def test_both_estimators_agree_with_the_exact_kl_of_two_gaussians():
    # KL(N(0,1) ‖ N(0.3,1)) = 0.045
    x = torch.randn(400_000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    log_ratio = -0.5 * (x - 0.3).square() + 0.5 * x.square()
    assert k1(log_ratio).mean().item() == pytest.approx(0.045, abs=2e-3)
    assert k3(log_ratio).mean().item() == pytest.approx(0.045, abs=2e-3)


def test_effective_sample_size_is_one_for_equal_weights_and_one_nth_for_a_single_heavy_one():
    assert effective_sample_size(torch.zeros(10)).item() == pytest.approx(1.0)
    assert effective_sample_size(torch.tensor([0.0, -50.0, -50.0, -50.0])).item() == pytest.approx(0.25)
