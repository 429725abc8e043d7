"""Masked means ignore what is not valid, NaN included."""

from __future__ import annotations

import torch

from surefoot.core.masked import masked_mean, masked_moments


def test_a_mean_of_nothing_is_zero():
    assert masked_mean(torch.tensor([1.0]), torch.tensor([False])).item() == 0.0


def test_a_nan_in_padding_does_not_reach_the_mean():
    mean, std = masked_moments(torch.tensor([2.0, float("nan")]), torch.tensor([True, False]))
    assert (mean.item(), std.item()) == (2.0, 0.0)
