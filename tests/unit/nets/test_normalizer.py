"""Running statistics against numpy over everything at once."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from surefoot.nets.normalizer import Normalizer


def rows(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal([1e3, -5.0, 0.01], [3.0, 0.1, 100.0], (n, 3))


def test_chunks_of_any_size_add_up_to_the_whole():
    data, normalizer = rows(1_000), Normalizer(3)
    for chunk in np.split(data, [1, 2, 10, 500, 999]):
        normalizer.update(chunk)
    assert np.allclose(normalizer.mean, data.mean(0), rtol=1e-12)
    assert np.allclose(normalizer.var, data.var(0), rtol=1e-10)
    assert normalizer.count.item() == 1_000


def test_what_comes_out_is_standardised_and_clipped():
    data, normalizer = rows(5_000), Normalizer(3, clip=2.0)
    normalizer.update(data)
    out = normalizer(torch.from_numpy(data.astype(np.float32))).numpy()
    expected = np.clip((data - data.mean(0)) / data.std(0), -2.0, 2.0)
    assert np.allclose(out, expected, atol=1e-3)


def test_the_default_clip_is_ten():
    normalizer = Normalizer(1)
    normalizer.update(np.array([[-1.0], [1.0]]))
    assert normalizer(torch.tensor([[1e6], [-1e6]])).tolist() == [[10.0], [-10.0]]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_row_that_is_not_finite_is_left_out_and_counted(bad):
    data = rows(100)
    poisoned = np.insert(data, 50, [1.0, bad, 2.0], axis=0)
    clean, dirty = Normalizer(3), Normalizer(3)
    clean.update(data)
    dirty.update(poisoned)
    assert torch.equal(clean.mean, dirty.mean)
    assert torch.equal(clean.var, dirty.var)
    assert dirty.rejected.item() == 1


def test_nothing_but_bad_rows_moves_nothing():
    normalizer = Normalizer(2)
    normalizer.update(np.full((3, 2), np.nan))
    assert (normalizer.count.item(), normalizer.rejected.item()) == (0.0, 3)
    assert torch.equal(normalizer(torch.ones(1, 2)), torch.ones(1, 2))


def test_a_feature_that_never_moved_is_not_blown_up():
    normalizer = Normalizer(1)
    normalizer.update(np.full((100, 1), 0.1))
    assert normalizer(torch.full((1, 1), 0.1)).abs().item() < 1e-3


def test_a_good_statistic_stays_good_after_one_nan_and_many_good_rows():
    normalizer = Normalizer(1)
    normalizer.update(np.array([[np.nan]]))
    normalizer.update(np.random.default_rng(0).normal(size=(100_000, 1)))
    assert normalizer.mean.item() == pytest.approx(0.0, abs=0.02)
    assert normalizer.var.item() == pytest.approx(1.0, abs=0.02)


def test_statistics_are_saved_and_what_follows_from_them_comes_back_with_them():
    first, second = Normalizer(3), Normalizer(3)
    first.update(rows(50))
    assert set(first.state_dict()) == {"mean", "var", "count", "rejected"}
    second.load_state_dict(first.state_dict())
    x = torch.from_numpy(rows(10, seed=1).astype(np.float32))
    assert torch.equal(first(x), second(x))
    first.update(rows(50, seed=2))
    second.update(rows(50, seed=2))
    assert torch.equal(first(x), second(x))


def test_statistics_are_float64_whatever_the_rows_are():
    normalizer = Normalizer(3)
    normalizer.update(rows(10).astype(np.float32))
    assert normalizer.mean.dtype == normalizer.var.dtype == torch.float64
