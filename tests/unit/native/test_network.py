"""Forward passes against numpy's, for every head, depth, activation and number of rows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from surefoot.native import kernel

NORMAL = -0.5 * np.log(2 * np.pi)
lgamma = np.vectorize(math.lgamma, otypes=[float])


def observe(net, n, seed=0, scale=1.0):
    return (scale * np.random.default_rng(seed).normal(size=(n, net.inputs))).astype(np.float32)


def log_softmax(x):
    x = x - x.max(axis=-1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))


def split(x, sizes):
    return np.split(x, np.cumsum(sizes)[:-1], axis=-1)


def log_prob_of(net, raw, action, mask=None):
    """What numpy says of the log-probability of `action`."""
    chosen, logits = action[:, : len(net.sizes)].astype(int), raw[:, : net.options]
    action, raw = action[:, len(net.sizes) :], raw[:, net.options :]
    logits = logits if mask is None else np.where(mask, logits, -np.inf)
    parts = [log_softmax(x) for x in split(logits, net.sizes)] if net.sizes else []
    total = sum((np.take_along_axis(p, chosen[:, [c]], axis=1)[:, 0] for c, p in enumerate(parts)), np.zeros(len(raw)))
    if net.head == "categorical":
        return total
    if net.head == "beta":
        a, b = np.split(1.0001 + np.logaddexp(raw, 0), 2, axis=1)
        x, width = action.astype(np.float64), net.high - net.low
        log_beta = lgamma(a) + lgamma(b) - lgamma(a + b)
        return total + ((a - 1) * np.log(x) + (b - 1) * np.log1p(-x) - log_beta - np.log(width)).sum(axis=1)
    log_std = np.clip(net.log_std[0].astype(np.float64), -20, 2)
    action = action.astype(np.float64)
    each = NORMAL - log_std - 0.5 * ((action - raw) / np.exp(log_std)) ** 2
    if net.head == "squashed":
        half = (net.high - net.low) / 2
        each = each - np.log(half * (1 - np.tanh(action) ** 2))
    return total + each.sum(axis=1)


SHAPES = [
    {"hidden": ()},
    {"hidden": (1,)},
    {"hidden": (64, 64)},
    {"hidden": (17, 31, 5)},
    {"hidden": (8, 16, 33, 7), "shared": True},
    {"hidden": (), "shared": True},
    {"hidden": (20,), "critic_hidden": (70, 3)},
    {"hidden": (9, 9), "critic_hidden": ()},
    {"hidden": (9,), "critic_inputs": 3},
    {"hidden": (), "critic_inputs": 40},
]
HEADS = [
    {"sizes": (3,)},
    {"sizes": (1,)},
    {"sizes": (40,)},
    {"sizes": (2, 1, 12)},
    {"head": "gaussian", "sizes": (3,)},
    {"head": "gaussian", "sizes": (17,)},
    {"head": "squashed", "sizes": (2,), "low": -2.0, "high": 1.0},
    {"head": "beta", "sizes": (3,), "low": -2.0, "high": 1.0},
    {"head": "gaussian", "sizes": (3, 2), "numbers": 2},
    {"head": "squashed", "sizes": (5,), "numbers": 1},
    {"head": "beta", "sizes": (1, 4), "numbers": 9},
]


@pytest.mark.parametrize("head", HEADS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_actions_values_and_log_probs_are_those_of_the_definition(isa, net_of, shape, head):
    net = net_of(isa=isa, inputs=5, **shape, **head)
    obs = observe(net, 19)
    raw, value = net.forward(obs)
    action, _, log_prob, found = net.act(obs)
    np.testing.assert_allclose(found, value, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(net.values(obs), value, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(log_prob, log_prob_of(net, raw, action), rtol=1e-4, atol=3e-5)


@pytest.mark.parametrize("activation", kernel.ACTIVATIONS)
@pytest.mark.parametrize("shared", [False, True])
def test_every_activation_is_the_one_it_is_called(isa, net_of, activation, shared):
    net = net_of(isa=isa, hidden=(13, 6), activation=activation, shared=shared, head="gaussian", sizes=(3,))
    obs = observe(net, 11, scale=3.0)
    raw, value = net.forward(obs)
    mean, _, _, found = net.act(obs, deterministic=True)
    np.testing.assert_allclose(mean, raw, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found, value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("n", [0, 1, 2, 255, 256, 257, 600])
@pytest.mark.parametrize(
    "head",
    [{"sizes": (2, 3)}, {"head": "squashed", "sizes": (2,)}, {"head": "beta", "sizes": (3,), "numbers": 2}],
    ids=str,
)
def test_many_rows_are_what_each_row_is_alone(isa, net_of, n, head):
    net = net_of(isa=isa, inputs=7, hidden=(10,), **head)
    obs = observe(net, n)
    action, env_action, log_prob, value = net.act(obs, deterministic=True)
    np.testing.assert_allclose(value, net.forward(obs)[1], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(net.values(obs), value)
    for i in {0, n // 2, n - 1} & set(range(n)):
        alone = net.act(obs[i : i + 1], deterministic=True)
        for many, one in zip((action, env_action, log_prob, value), alone, strict=True):
            np.testing.assert_allclose(many[i : i + 1], one, rtol=1e-5, atol=1e-6)


def test_a_network_of_eight_layers_on_both_sides_is_within_reach(isa, net_of):
    net = net_of(isa=isa, hidden=(4,) * 8, critic_hidden=(5,) * 8, activation="silu")
    obs = observe(net, 3)
    np.testing.assert_allclose(net.values(obs), net.forward(obs)[1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("inputs", [1, 15, 16, 17, 400])
def test_observations_are_shifted_scaled_and_clipped(isa, net_of, inputs):
    net = net_of(isa=isa, inputs=inputs, normalizer=(0.5, 2.0, 1.5))
    obs = observe(net, 9, scale=2.0)
    np.testing.assert_allclose(net.values(obs), net.forward(obs)[1], rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("critic_inputs", [1, 16, 33])
def test_a_critic_that_sees_something_else_has_its_own_shift_and_scale(isa, net_of, critic_inputs):
    net = net_of(isa=isa, inputs=5, critic_inputs=critic_inputs, normalizer=(0.5, 2.0, 1.5), head="gaussian")
    obs = observe(net, 9, scale=2.0)
    raw, value = net.forward(obs)
    mean, _, _, found = net.act(obs, deterministic=True)
    np.testing.assert_allclose(mean, raw, rtol=1e-4, atol=2e-5)
    np.testing.assert_allclose(found, value, rtol=1e-4, atol=2e-5)
    np.testing.assert_allclose(net.values(obs), value, rtol=1e-4, atol=2e-5)


def test_a_temperature_divides_the_logits_and_leaves_the_numbers_alone(isa, net_of, rng):
    net = net_of(isa=isa, head="gaussian", sizes=(3, 2), numbers=2)
    kernel.net_temperature(net.handle, 2.5)
    obs = observe(net, 9)
    raw, _ = net.forward(obs)
    action, _, log_prob, _ = net.act(obs, rng)
    raw[:, : net.options] /= 2.5
    np.testing.assert_allclose(log_prob, log_prob_of(net, raw, action), rtol=1e-4, atol=3e-5)


def test_masked_options_are_never_chosen_and_do_not_count(isa, net_of, rng):
    net = net_of(isa=isa, sizes=(4, 9), hidden=(6,))
    obs, random = observe(net, 300), np.random.default_rng(0)
    mask = random.random((300, 13)) < 0.4
    mask[np.arange(300), random.integers(0, 4, 300)] = True
    mask[np.arange(300), 4 + random.integers(0, 9, 300)] = True
    raw, _ = net.forward(obs)
    for deterministic in (False, True):
        action, _, log_prob, _ = net.act(obs, rng, mask=mask, deterministic=deterministic)
        assert mask[np.arange(300), action[:, 0]].all()
        assert mask[np.arange(300), 4 + action[:, 1]].all()
        np.testing.assert_allclose(log_prob, log_prob_of(net, raw, action, mask), rtol=1e-4, atol=3e-5)


def test_new_weights_are_used_once_they_are_packed(net_of):
    net = net_of(hidden=(8, 8))
    obs = observe(net, 5)
    before = net.values(obs)
    for x in net.tensors:
        x += np.float32(0.25)
    kernel.net_pack(net.handle)
    np.testing.assert_allclose(net.values(obs), net.forward(obs)[1], rtol=1e-4, atol=1e-5)
    assert not np.allclose(net.values(obs), before)


def test_a_nan_weight_is_seen_in_the_value(isa, net_of):
    net = net_of(isa=isa, hidden=(8,))
    net.critic[0][3, 0] = np.nan
    kernel.net_pack(net.handle)
    assert np.isnan(net.values(observe(net, 3))).all()


def test_sizes_are_those_of_the_tensors_in_order(net_of):
    net = net_of(hidden=(6, 5), critic_hidden=(7,), head="gaussian", sizes=(3,))
    assert kernel.net_sizes(net.handle) == tuple(x.size for x in net.tensors)


def test_what_was_kept_comes_back(net_of):
    net = net_of(hidden=(6,), head="gaussian", sizes=(2,))
    net.remember()
    memory = [*net.tensors, *(s for slots in net.slots for s in slots)]
    for i, x in enumerate(memory):
        x[...] = i + np.arange(x.size).reshape(x.shape)
    before = [x.copy() for x in memory]
    kernel.net_save(net.handle)
    for x in memory:
        x[...] = -1
    kernel.net_restore(net.handle)
    for x, old in zip(memory, before, strict=True):
        np.testing.assert_array_equal(x, old)


def test_what_was_kept_with_other_slots_is_not_put_back_in_the_wrong_place(net_of):
    net = net_of()
    net.remember()
    kernel.net_save(net.handle)
    net.slots = []
    net.point()
    with pytest.raises(ValueError, match="nothing to restore"):
        kernel.net_restore(net.handle)
