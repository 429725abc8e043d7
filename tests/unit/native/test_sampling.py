"""What `net_act` draws: frequencies, moments, bounds, and what of the generator it uses."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.native import kernel

N = 20_000


def same(net, n=N):
    """The same observation `n` times."""
    return np.tile(np.linspace(-1, 1, net.inputs, dtype=np.float32), (n, 1))


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


@pytest.mark.parametrize("masked", [False, True])
def test_options_are_drawn_as_often_as_they_are_probable(isa, net_of, rng, masked):
    net = net_of(isa=isa, sizes=(5, 3), hidden=(4,))
    mask = np.array([1, 0, 1, 1, 0, 1, 1, 0], bool) if masked else np.ones(8, bool)
    action = net.act(same(net), rng, mask=np.tile(mask, (N, 1)) if masked else None)[0]
    raw = np.where(mask, net.forward(same(net, 1))[0][0], -np.inf)
    for choice, part in enumerate((raw[:5], raw[5:])):
        expected = N * softmax(part)
        found = np.bincount(action[:, choice], minlength=len(part))
        live = expected > 0
        assert found[~live].sum() == 0
        chi_square = ((found - expected)[live] ** 2 / expected[live]).sum()
        assert chi_square < 20.0  # four degrees of freedom at most: one in two thousand seeds, and this one is fixed


def test_two_choices_are_drawn_independently(net_of, rng):
    net = net_of(sizes=(2, 2))
    action = net.act(same(net), rng)[0]
    assert abs(np.corrcoef(action[:, 0], action[:, 1])[0, 1]) < 0.03


@pytest.mark.parametrize("size", [1, 2, 3])
def test_normals_have_their_moments(isa, net_of, rng, size):
    net = net_of(isa=isa, head="gaussian", sizes=(size,))
    action = net.act(same(net), rng)[0].astype(np.float64)
    z = (action - net.forward(same(net, 1))[0]) / np.exp(net.log_std[0])
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=0.03)
    np.testing.assert_allclose(z.std(axis=0), 1, atol=0.03)
    np.testing.assert_allclose((z**3).mean(axis=0), 0, atol=0.1)
    np.testing.assert_allclose((z**4).mean(axis=0), 3, atol=0.3)
    if size > 1:
        assert np.abs(np.corrcoef(z.T) - np.eye(size)).max() < 0.03
    assert len(np.unique(z)) > 0.95 * z.size


def test_a_gaussian_is_clipped_for_the_world_only(net_of, rng):
    net = net_of(head="gaussian", sizes=(2,), low=-0.5, high=0.25, spread=2.0)
    action, env_action, _, _ = net.act(same(net), rng)
    np.testing.assert_array_equal(env_action, np.clip(action, -0.5, 0.25))
    assert action.max() > 1.0


def test_a_squashed_action_stays_between_its_bounds(isa, net_of, rng):
    net = net_of(isa=isa, head="squashed", sizes=(2,), low=-2.0, high=6.0, spread=3.0)
    action, env_action, _, _ = net.act(same(net), rng)
    np.testing.assert_allclose(env_action, 2 + 4 * np.tanh(action), rtol=1e-5, atol=1e-5)
    assert env_action.min() >= -2.0
    assert env_action.max() <= 6.0


def beta_parameters(net):
    return np.split(1.0001 + np.logaddexp(net.forward(same(net, 1))[0][0, net.options :], 0), 2)


@pytest.mark.parametrize("raise_by", [0.0, 5.0, 300.0])
def test_beta_draws_are_spread_like_the_density(isa, net_of, rng, raise_by):
    net = net_of(isa=isa, head="beta", sizes=(2,), low=-2.0, high=6.0)
    net.policy_out[1] += np.float32(raise_by)
    kernel.net_pack(net.handle)
    action, env_action, _, _ = net.act(same(net), rng)
    np.testing.assert_allclose(env_action, -2 + 8 * action, rtol=1e-5, atol=1e-5)
    for k, (a, b) in enumerate(zip(*beta_parameters(net), strict=True)):
        x = action[:, k].astype(np.float64)
        variance = a * b / (a + b) ** 2 / (a + b + 1)
        assert x.mean() == pytest.approx(a / (a + b), abs=4 * np.sqrt(variance / N))
        assert x.var() == pytest.approx(variance, rel=0.05)
        # Bins of equal probability, by integrating the density on a fine grid.
        grid = (np.arange(200_000) + 0.5) / 200_000
        density = (a - 1) * np.log(grid) + (b - 1) * np.log1p(-grid)
        below = np.cumsum(np.exp(density - density.max()))
        edges = np.interp(np.linspace(0, 1, 21)[1:-1], below / below[-1], grid)
        found = np.bincount(np.searchsorted(edges, x), minlength=20)
        assert ((found - N / 20) ** 2 / (N / 20)).sum() < 45.0  # nineteen degrees of freedom: one in a thousand seeds


def test_a_beta_action_keeps_off_the_bounds(isa, net_of, rng):
    net = net_of(isa=isa, head="beta", sizes=(2,))
    net.policy_out[1][:] = [-80, 80, 80, -80]
    kernel.net_pack(net.handle)
    for deterministic in (False, True):
        action, env_action, log_prob, _ = net.act(same(net, 50), rng, deterministic=deterministic)
        assert action.min() >= np.float32(1e-6)
        assert action.max() <= np.float32(1 - 1e-6)
        assert np.abs(env_action).max() <= 1.0
        assert np.isfinite(log_prob).all()


def test_a_beta_distribution_that_is_none_ends_in_nan_and_not_in_a_loop(isa, net_of, rng):
    net = net_of(isa=isa, head="beta", sizes=(1,))
    net.policy_out[1][:] = [np.nan, np.inf]
    kernel.net_pack(net.handle)
    assert np.isnan(net.act(same(net, 3), rng)[2]).all()


def test_choices_and_numbers_of_one_action_are_drawn_independently(isa, net_of, rng):
    net = net_of(isa=isa, head="gaussian", sizes=(3, 2), numbers=2)
    mask = np.tile(np.array([1, 0, 1, 1, 1], bool), (N, 1))
    action, env_action, _, _ = net.act(same(net), rng, mask=mask)
    raw = net.forward(same(net, 1))[0][0]
    raw[1] = -np.inf
    assert set(np.unique(action[:, 0])) == {0.0, 2.0}
    for c, part in enumerate((raw[:3], raw[3:5])):
        found = np.bincount(action[:, c].astype(int), minlength=len(part)) / N
        np.testing.assert_allclose(found, softmax(part), atol=0.015)
    z = (action[:, 2:] - raw[5:]) / np.exp(net.log_std[0])
    np.testing.assert_allclose([z.mean(), z.std()], [0, 1], atol=0.03)
    assert np.abs(np.corrcoef(action.T) - np.eye(4)).max() < 0.03
    np.testing.assert_array_equal(env_action[:, :2], action[:, :2])
    np.testing.assert_array_equal(env_action[:, 2:], np.clip(action[:, 2:], -1, 1))


@pytest.mark.parametrize(
    "head", [{"sizes": (7, 2)}, {"head": "gaussian", "sizes": (3,)}, {"head": "squashed"}], ids=str
)
def test_deterministic_is_the_mode_and_draws_nothing(isa, net_of, rng, head):
    net = net_of(isa=isa, **head)
    obs = np.random.default_rng(0).normal(size=(30, net.inputs)).astype(np.float32)
    before = rng.copy()
    action = net.act(obs, rng, deterministic=True)[0]
    raw = net.forward(obs)[0]
    if net.head == "categorical":
        np.testing.assert_array_equal(action, np.stack([raw[:, :7].argmax(1), raw[:, 7:].argmax(1)], axis=1))
    else:
        np.testing.assert_allclose(action, raw, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(rng, before)


def test_the_mode_of_a_beta_distribution_is_the_peak_of_its_density(isa, net_of, rng):
    net, before = net_of(isa=isa, head="beta", sizes=(4,), numbers=2), rng.copy()
    action = net.act(same(net, 1), rng, deterministic=True)[0][0]
    grid = (np.arange(100_000) + 0.5) / 100_000
    for k, (a, b) in enumerate(zip(*beta_parameters(net), strict=True)):
        peak = grid[((a - 1) * np.log(grid) + (b - 1) * np.log1p(-grid)).argmax()]
        assert action[1 + k] == pytest.approx(peak, abs=3e-5)
    assert action[0] == net.forward(same(net, 1))[0][0, :4].argmax()
    np.testing.assert_array_equal(rng, before)


def test_the_world_is_told_its_own_names_of_the_options(net_of):
    net = net_of(sizes=(4,), first_option=-7)
    action, env_action, _, _ = net.act(same(net, 50))
    np.testing.assert_array_equal(env_action, action - 7)
    assert action.min() >= 0


@pytest.mark.parametrize("head", [{"sizes": (5, 3)}, {"head": "gaussian", "sizes": (3,)}], ids=str)
def test_the_same_bits_give_the_same_actions_and_others_give_others(isa, net_of, new_rng, head):
    net = net_of(isa=isa, **head)
    first, again, other = (net.act(same(net, 64), new_rng(seed))[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("n", [1, 3, 257, 300])
@pytest.mark.parametrize(
    "head",
    [{"sizes": (5, 3)}, {"head": "gaussian", "sizes": (3,)}, {"head": "squashed"}, {"head": "beta"}],
    ids=str,
)
def test_every_instruction_set_uses_as_many_random_bits_and_draws_alike(net_of, new_rng, head, n):
    after, drawn = [], []
    for isa in kernel.instruction_sets():
        rng = new_rng()
        net = net_of(isa=isa, **head)
        drawn.append(net.act(same(net, n), rng)[0])
        after.append(rng)
    for rng, action in zip(after[1:], drawn[1:], strict=True):
        np.testing.assert_array_equal(rng, after[0])
        if net.head == "categorical":  # rounding may decide a draw that falls between two options
            assert np.mean(action != drawn[0]) < 0.01
        else:
            np.testing.assert_allclose(action, drawn[0], rtol=1e-4, atol=1e-5)


def test_the_generator_is_xoshiro256_plus_plus(net_of):
    """One choice of two options for one row takes one number; the state after it is worked out here by hand."""
    rng = np.array([1, 2, 3, 4], np.uint64)
    net = net_of(sizes=(2,))
    net.act(same(net, 1), rng)
    s = [1, 2, 3, 4]
    t = s[1] << 17
    s[2] ^= s[0]
    s[3] ^= s[1]
    s[1] ^= s[2]
    s[0] ^= s[3]
    s[2] ^= t
    s[3] = (s[3] << 45 | s[3] >> 19) % 2**64
    assert rng.tolist() == s
