from __future__ import annotations

import numpy as np
import pytest
import torch

from surefoot.core.moments import correlation, explained_variance, standardize


def test_a_standardised_batch_has_mean_zero_and_population_std_one():
    z, std = standardize(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    assert std.item() == pytest.approx(np.std([1, 2, 3, 4]))
    assert z.mean().item() == pytest.approx(0.0, abs=1e-6)
    assert z.square().mean().item() == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e6, -1e6, 1e-30])
def test_advantages_that_do_not_vary_become_zero(constant):
    z, _ = standardize(torch.full((64,), constant))
    assert (z == 0).all()


def test_a_single_advantage_becomes_zero_rather_than_nan():
    assert standardize(torch.tensor([3.0]))[0].item() == 0.0


def test_padding_does_not_change_a_standardised_batch():
    x = torch.tensor([1.0, 2.0, 5.0, 1e9])
    z, _ = standardize(x, torch.tensor([True, True, True, False]))
    assert torch.allclose(z[:3], standardize(x[:3])[0])


def test_explained_variance_is_one_for_a_perfect_critic_and_zero_for_a_constant_one():
    target = torch.tensor([1.0, 2.0, 4.0])
    assert explained_variance(target, target).item() == 1.0
    assert explained_variance(torch.full((3,), 7.0), target).item() == pytest.approx(0.0, abs=1e-6)
    assert explained_variance(-target, target).item() == pytest.approx(-3.0)  # error 2·target: 1 - 4
    assert explained_variance(target, torch.ones(3)).item() == 0.0


def test_correlation_is_that_of_numpy_and_zero_without_variance():
    x, y = torch.tensor([1.0, 2.0, 4.0, 3.0]), torch.tensor([2.0, 1.0, 5.0, 3.0])
    assert correlation(x, y).item() == pytest.approx(np.corrcoef(x, y)[0, 1], abs=1e-6)
    assert correlation(x, torch.ones(4)).item() == 0.0
