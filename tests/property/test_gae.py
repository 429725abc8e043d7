"""GAE against its definition as a double sum, and against closed forms."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from surefoot.core.advantage import gae


def oracle(reward, value, next_value, terminated, truncated, valid, gamma, lam):
    """A_t = Σ_k (γλ)^k δ_{t+k}, summed until the episode ends, in float64, O(T²): the definition itself."""
    T, N = reward.shape
    out = np.zeros((T, N))
    for n in range(N):
        for t in range(T):
            if not valid[t, n]:
                continue
            weight, k = 1.0, t
            while k < T and valid[k, n]:
                successor = 0.0 if terminated[k, n] else next_value[k, n]
                out[t, n] += weight * (reward[k, n] + gamma * successor - value[k, n])
                if terminated[k, n] or truncated[k, n]:
                    break
                weight *= gamma * lam
                k += 1
    return out


@st.composite
def rollouts(draw):
    T, N = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    arrays = [rng.normal(size=(T, N)) for _ in range(3)]
    ends = rng.random((T, N))
    share = draw(st.sampled_from([0.0, 0.2, 0.6]))
    terminated, truncated = ends < share / 2, (ends >= share / 2) & (ends < share)
    valid = rng.random((T, N)) >= draw(st.sampled_from([0.0, 0.3]))
    return (*arrays, terminated, truncated, valid)


def ours(reward, value, next_value, terminated, truncated, valid, gamma, lam):
    as_tensor = [torch.from_numpy(np.ascontiguousarray(x)) for x in (reward, value, next_value)]
    ended = torch.from_numpy(terminated | truncated)
    return gae(*as_tensor, torch.from_numpy(terminated), ended, torch.from_numpy(valid), gamma=gamma, lam=lam).numpy()


@given(rollouts(), st.floats(0, 1), st.floats(0, 1))
def test_gae_is_the_double_sum_of_its_definition(rollout, gamma, lam):
    assert np.allclose(ours(*rollout, gamma, lam), oracle(*rollout, gamma, lam), rtol=1e-12, atol=1e-12)


@given(rollouts(), st.floats(0, 1))
def test_with_lambda_zero_it_is_the_one_step_error(rollout, gamma):
    reward, value, next_value, terminated, _, valid = rollout
    expected = reward + gamma * np.where(terminated, 0.0, next_value) - value
    assert np.allclose(ours(*rollout, gamma, 0.0), np.where(valid, expected, 0.0))


@given(rollouts(), st.floats(0, 1), st.floats(0, 1))
def test_what_stands_in_next_value_at_a_terminal_step_does_not_count(rollout, gamma, lam):
    reward, value, next_value, terminated, truncated, valid = rollout
    poisoned = np.where(terminated, np.nan, next_value)
    a = ours(reward, value, next_value, terminated, truncated, valid, gamma, lam)
    b = ours(reward, value, poisoned, terminated, truncated, valid, gamma, lam)
    assert np.array_equal(a, b)


@given(rollouts(), st.floats(0, 1), st.floats(0, 1), st.integers(0, 3))
def test_padding_at_the_end_changes_nothing_before_it(rollout, gamma, lam, pad):
    padded = [np.concatenate([x, np.zeros((pad, x.shape[1]), x.dtype)]) for x in rollout]
    T = len(rollout[0])
    assert np.array_equal(ours(*padded, gamma, lam)[:T], ours(*rollout, gamma, lam))


@given(rollouts(), st.floats(0, 1), st.floats(0, 1))
def test_a_stream_does_not_see_its_neighbours(rollout, gamma, lam):
    whole = ours(*rollout, gamma, lam)
    for n in range(whole.shape[1]):
        alone = ours(*[x[:, n : n + 1] for x in rollout], gamma, lam)
        assert np.array_equal(alone[:, 0], whole[:, n])


def test_with_lambda_one_it_is_the_discounted_return_minus_the_value():
    # r = 1, 2, 3, then the end; γ = ½: returns 1 + 1 + ¾ = 2.75, 2 + 1.5 = 3.5, 3.
    reward = torch.tensor([[1.0], [2.0], [3.0]])
    value = torch.tensor([[0.5], [1.0], [-1.0]])
    next_value = torch.tensor([[1.0], [-1.0], [99.0]])
    terminated = torch.tensor([[False], [False], [True]])
    a = gae(reward, value, next_value, terminated, terminated, gamma=0.5, lam=1.0)
    assert torch.allclose(a.flatten(), torch.tensor([2.25, 2.5, 4.0]))


def test_a_constant_value_that_is_right_leaves_no_advantage():
    # Reward 1 for ever is worth 1 / (1 - γ); a critic that says so is never surprised, ends of rollouts included.
    gamma = 0.9
    v = torch.full((7, 2), 1.0 / (1.0 - gamma), dtype=torch.float64)
    never = torch.zeros((7, 2), dtype=torch.bool)
    a = gae(torch.ones_like(v), v, v, never, never, gamma=gamma, lam=0.95)
    assert a.abs().max() < 1e-12


def test_a_time_limit_bootstraps_and_cuts():
    # Truncated at t = 0 with successor worth 10: A_0 = 1 + 0.5·10 - 2 = 4 whatever comes after.
    reward, value = torch.tensor([[1.0], [100.0]]), torch.tensor([[2.0], [0.0]])
    next_value = torch.tensor([[10.0], [0.0]])
    none, cut = torch.zeros((2, 1), dtype=torch.bool), torch.tensor([[True], [False]])
    a = gae(reward, value, next_value, none, cut, gamma=0.5, lam=1.0)
    assert a[0, 0] == 4.0
