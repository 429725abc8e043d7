"""Matrix products, advantages and descriptions against numpy's definitions of them."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.native import kernel


@pytest.mark.parametrize("seed", range(4))
def test_a_product_is_numpys_for_any_shape(isa, seed):
    rng = np.random.default_rng(seed)
    for _ in range(12):
        m, n, k = (int(x) for x in rng.choice([1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 100], 3))
        a, b = rng.normal(size=(m, k)).astype(np.float32), rng.normal(size=(k, n)).astype(np.float32)
        c = np.full((m, n), np.nan, np.float32)
        kernel.multiply(isa, m, n, k, a, b, c)
        np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=1e-5, atol=2e-5, err_msg=f"{m}×{k} · {k}×{n}")


def test_a_product_deeper_than_a_panel_is_summed_over_all_of_it(isa):
    rng = np.random.default_rng(0)
    for k in (383, 384, 385, 1000):
        a, b = rng.normal(size=(9, k)).astype(np.float32), rng.normal(size=(k, 37)).astype(np.float32)
        c = np.empty((9, 37), np.float32)
        kernel.multiply(isa, 9, 37, k, a, b, c)
        np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=1e-4, atol=1e-4)


def advantages(reward, value, next_value, terminated, truncated, valid, gamma, lam):
    """A_t = Σ_{s ≥ t} (γλ)^{s-t} δ_s, up to the end of the episode or the first row that does not count; O(T²)."""
    out = np.zeros(reward.shape)
    steps, streams = reward.shape
    for n in range(streams):
        for t in range(steps):
            weight = 1.0
            for s in range(t, steps):
                if not valid[s, n]:
                    break
                after = 0.0 if terminated[s, n] else gamma * next_value[s, n]
                out[t, n] += weight * (reward[s, n] + after - value[s, n])
                if terminated[s, n] or truncated[s, n]:
                    break
                weight *= gamma * lam
    return out


@pytest.mark.parametrize(("gamma", "lam"), [(0.99, 0.95), (1.0, 1.0), (0.9, 0.0), (0.0, 0.9)])
@pytest.mark.parametrize(("steps", "streams"), [(1, 1), (7, 1), (1, 5), (40, 3)])
def test_gae_is_the_sum_over_what_follows(gamma, lam, steps, streams):
    rng = np.random.default_rng(steps + streams)
    shape = (steps, streams)
    reward, value, next_value = (rng.normal(size=shape).astype(np.float32) for _ in range(3))
    terminated = rng.random(shape) < 0.15
    truncated = (rng.random(shape) < 0.15) & ~terminated
    valid = rng.random(shape) < 0.85
    next_value[terminated] = np.nan  # not to be read
    advantage, target = np.full(shape, np.nan, np.float32), np.full(shape, np.nan, np.float32)
    kernel.gae(steps, streams, reward, value, next_value, terminated, truncated, valid, gamma, lam, advantage, target)
    expected = advantages(reward, value, next_value, terminated, truncated, valid, gamma, lam)
    np.testing.assert_allclose(advantage, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(target, expected + value, rtol=1e-5, atol=1e-5)


def test_a_row_that_does_not_count_has_no_advantage_whatever_is_in_it():
    one = np.ones((3, 1), np.float32)
    reward = np.array([[1.0], [np.nan], [1.0]], np.float32)
    none = np.zeros((3, 1), bool)
    valid = np.array([[True], [False], [True]])
    advantage, target = np.empty_like(one), np.empty_like(one)
    kernel.gae(3, 1, reward, one, one, none, none, valid, 0.5, 1.0, advantage, target)
    assert advantage[:, 0].tolist() == [0.5, 0.0, 0.5]


def test_a_rollout_is_described_as_numpy_would():
    rng = np.random.default_rng(3)
    reward, value, target = (rng.normal(i, 1 + i, 200).astype(np.float32) for i in range(3))
    advantage = target.astype(np.float64) - value
    expected = (
        advantage.mean(),
        advantage.std(),
        np.corrcoef(reward, advantage)[0, 1],
        1 - np.var(advantage) / np.var(target.astype(np.float64)),
        *(reward.mean(dtype=float), reward.std(dtype=float), value.mean(dtype=float)),
        *(target.mean(dtype=float), target.std(dtype=float)),
    )
    assert kernel.describe(200, reward, value, target) == pytest.approx(expected, rel=1e-6)


def test_equal_rewards_and_targets_explain_nothing_and_correlate_with_nothing():
    one = np.ones(5, np.float32)
    said = kernel.describe(5, one, np.arange(5, dtype=np.float32), one)
    assert said[2] == 0.0
    assert said[3] == 0.0
