"""Advantages and statistics of a rollout against numpy's definitions of them."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.native import kernel


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
    kernel.gae(
        steps=steps,
        streams=streams,
        gamma=gamma,
        lam=lam,
        reward=reward,
        value=value,
        next_value=next_value,
        terminated=terminated,
        truncated=truncated,
        valid=valid,
        advantage=advantage,
        target=target,
    )
    expected = advantages(reward, value, next_value, terminated, truncated, valid, gamma, lam)
    np.testing.assert_allclose(advantage, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(target, expected + value, rtol=1e-5, atol=1e-5)


def test_a_row_that_does_not_count_has_no_advantage_whatever_is_in_it():
    one = np.ones((3, 1), np.float32)
    reward = np.array([[1.0], [np.nan], [1.0]], np.float32)
    none = np.zeros((3, 1), bool)
    valid = np.array([[True], [False], [True]])
    advantage, target = np.empty_like(one), np.empty_like(one)
    kernel.gae(
        steps=3,
        streams=1,
        gamma=0.5,
        lam=1.0,
        reward=reward,
        value=one,
        next_value=one,
        terminated=none,
        truncated=none,
        valid=valid,
        advantage=advantage,
        target=target,
    )
    assert advantage[:, 0].tolist() == [0.5, 0.0, 0.5]


def test_a_rollout_is_described_as_numpy_would():
    rng = np.random.default_rng(3)
    reward, value, target = (rng.normal(i, 1 + i, 200).astype(np.float32) for i in range(3))
    advantage = target.astype(np.float64) - value
    expected = {
        "advantage_mean": advantage.mean(),
        "advantage_std": advantage.std(),
        "reward_advantage_corr": np.corrcoef(reward, advantage)[0, 1],
        "explained_variance": 1 - np.var(advantage) / np.var(target.astype(np.float64)),
        "reward_mean": reward.mean(dtype=float),
        "reward_std": reward.std(dtype=float),
        "value_mean": value.mean(dtype=float),
        "target_mean": target.mean(dtype=float),
        "target_std": target.std(dtype=float),
    }
    assert kernel.rollout_statistics(200, reward, value, target) == pytest.approx(expected, rel=1e-6)


def test_equal_rewards_and_targets_explain_nothing_and_correlate_with_nothing():
    one = np.ones(5, np.float32)
    statistics = kernel.rollout_statistics(5, one, np.arange(5, dtype=np.float32), one)
    assert statistics["reward_advantage_corr"] == 0.0
    assert statistics["explained_variance"] == 0.0
