"""One step of plain gradient descent against the loss written out in numpy and differentiated by differences."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from surefoot.native import kernel

OPTIMIZERS = kernel.OPTIMIZERS
WIDE = 1e6
lgamma = np.vectorize(math.lgamma, otypes=[float])


def digamma(x):
    """The derivative of math.lgamma by differences of fourth order."""
    h = 0.01 * x
    return (8 * (lgamma(x + h) - lgamma(x - h)) - lgamma(x + 2 * h) + lgamma(x - 2 * h)) / (12 * h)


def batch_of(net, n, seed=0):
    """Observations, what was done, and random advantages and targets."""
    rng = np.random.default_rng(seed)
    obs = rng.normal(size=(n, net.inputs)).astype(np.float32)
    action, _, log_prob, value = net.act(obs)
    advantage, off = (rng.normal(size=n).astype(np.float32) for _ in range(2))
    return {
        "features": obs,
        "action": action,
        "log_prob": log_prob + np.float32(0.05) * off,
        "value": value,
        "advantage": advantage,
        "target": value + rng.normal(size=n).astype(np.float32),
        "ref_log_prob": None,
        "mask": None,
    }


def learn(net, batch, sizes, *, epochs=1, optimizer="sgd", lr=1.0, standardize=0, order=None, **knobs):
    n = len(batch["value"])
    table, epoch_of = np.full((epochs * len(sizes), 11), np.nan), np.full(epochs * len(sizes), -1, np.int32)
    settings = {
        "clip": WIDE,
        "value_clip": -1.0,
        "dual_clip": -1.0,
        "log_ratio_limit": 20.0,
        "max_grad_norm": WIDE,
        "kl_limit": -1.0,
        "vf_coef": 0.0,
        "ent_coef": 0.0,
        "critic_lr_scale": 1.0,
        "kl_coef": 0.0,
        "weight_decay": 0.0,
        "eps": 1e-5,
        "momentum": 0.0,
        "beta1": 0.9,
        "beta2": 0.999,
        "alpha": 0.99,
        "max_bad_steps": 3,
        "bad_in_a_row": 0,
        **knobs,
    }
    said = kernel.net_learn(
        net.handle,
        samples=n,
        minibatches=len(sizes),
        epochs=epochs,
        optimizer=optimizer,
        lr=lr,
        standardize=standardize,
        order=np.tile(np.arange(n), epochs) if order is None else order,
        sizes=np.array(sizes, np.int64),
        table=table,
        epoch_of=epoch_of,
        **settings,
        **batch,
    )
    return said, table, epoch_of


def loss(net, batch, vf_coef, ent_coef, temperature=1.0):
    """-E[A π/π_old] + c₁ ½E[(V - R)²] - c₂ E[H], in float64."""
    raw, value = net.forward(batch["features"])
    log_prob, entropy = np.zeros(len(raw)), 0.0
    begins = np.cumsum([0, *net.sizes])
    for c, (begin, end) in enumerate(itertools.pairwise(begins)):
        logits = raw[:, begin:end] / temperature
        log_p = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        log_prob += np.take_along_axis(log_p, batch["action"][:, [c]].astype(int), axis=1)[:, 0]
        entropy -= (np.exp(log_p) * log_p).sum(axis=1).mean()
    raw, action = raw[:, net.options :], batch["action"][:, len(net.sizes) :]
    if net.head == "beta":
        a, b = np.split(1.0001 + np.logaddexp(raw, 0), 2, axis=1)
        x, scale = action.astype(np.float64), np.log(net.high - net.low)
        log_beta = lgamma(a) + lgamma(b) - lgamma(a + b)
        log_prob += ((a - 1) * np.log(x) + (b - 1) * np.log1p(-x) - log_beta - scale).sum(axis=1)
        inner = (a - 1) * digamma(a) + (b - 1) * digamma(b) - (a + b - 2) * digamma(a + b)
        entropy += (log_beta - inner + scale).sum(axis=1).mean()
    elif net.head != "categorical":
        log_std = net.log_std[0].astype(np.float64)
        if net.head == "gsde":
            # The features are constants here: only log_std learns through the variance.
            log_std = 0.5 * np.log(net.frozen**2 @ np.exp(2.0 * log_std) + 1e-6)
        z = (action - raw) / np.exp(log_std)
        log_prob += (-0.5 * z**2 - log_std - 0.5 * np.log(2 * np.pi)).sum(axis=1)
        entropy += (log_std + 0.5 * np.log(2 * np.pi * np.e)).sum(axis=-1).mean()
    policy = -(batch["advantage"] * np.exp(log_prob - batch["log_prob"])).mean()
    return policy + vf_coef * 0.5 * ((value - batch["target"]) ** 2).mean() - ent_coef * entropy


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(
    "head",
    [
        {"sizes": (3,)},
        {"head": "gaussian", "sizes": (2,)},
        {"head": "gsde", "sizes": (3,)},
        {"head": "beta", "sizes": (2,), "high": 3.0},
        {"head": "gaussian", "sizes": (3, 2), "numbers": 1},
        {"head": "gsde", "sizes": (2,), "numbers": 2},
        {"head": "beta", "sizes": (2, 3), "numbers": 1, "activation": "gelu"},
    ],
    ids=str,
)
def test_one_step_of_descent_is_the_gradient_of_the_written_out_loss(isa, net_of, head, shared):
    net = net_of(isa=isa, inputs=3, hidden=(5,), shared=shared, **head)
    agrees_with_differences(net)


def test_a_critic_that_sees_something_else_gets_its_own_gradient(isa, net_of):
    agrees_with_differences(net_of(isa=isa, inputs=3, hidden=(5,), critic_inputs=2))
    agrees_with_differences(net_of(isa=isa, inputs=3, hidden=(), critic_inputs=7, critic_hidden=(4,), head="gsde"))


@pytest.mark.parametrize("temperature", [0.5, 3.0])
def test_a_temperature_scales_the_gradient_of_the_logits(isa, net_of, temperature):
    for head in ({"sizes": (3, 2)}, {"head": "beta", "sizes": (3,), "numbers": 1}):
        net = net_of(isa=isa, inputs=3, hidden=(5,), **head)
        kernel.net_temperature(net.handle, temperature)
        agrees_with_differences(net, temperature)


def agrees_with_differences(net, temperature=1.0):
    """Take one step of plain descent, and compare it with differences of the loss."""
    net.remember()
    batch = batch_of(net, 21)
    net.frozen = net.features(batch["features"])
    before = [x.copy() for x in net.tensors]
    said, table, _ = learn(net, batch, [21], vf_coef=0.5, ent_coef=0.1, lr=1.0)
    assert said[:2] == (1, 0)
    moved = [old - new for old, new in zip(before, net.tensors, strict=True)]
    for x, old in zip(net.tensors, before, strict=True):
        x[...] = old
    assert table[0, 3] == pytest.approx(loss(net, batch, 0.5, 0.1, temperature), rel=1e-4)
    for x, slope in zip(net.tensors, moved, strict=True):
        for i in np.ndindex(x.shape):
            old, sides = x[i], []
            for step in (1e-3, -1e-3):
                x[i] = old + np.float32(step)
                sides.append((float(x[i]), loss(net, batch, 0.5, 0.1, temperature)))
            x[i] = old
            (right, above), (left, below) = sides
            assert slope[i] == pytest.approx((above - below) / (right - left), rel=2e-3, abs=2e-4)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize(
    "shape",
    [
        {"hidden": (), "sizes": (3,)},
        {"hidden": (33, 17), "sizes": (2, 9), "shared": True, "activation": "silu"},
        {"hidden": (70,), "critic_hidden": (5, 300), "head": "gaussian", "sizes": (17,), "activation": "elu"},
        {"hidden": (16, 16), "head": "squashed", "sizes": (2,), "activation": "relu"},
        {"inputs": 400, "hidden": (9,), "sizes": (40,), "activation": "leaky_relu"},
        {"hidden": (33, 17), "head": "gsde", "sizes": (5,)},
        {"inputs": 11, "hidden": (), "head": "gsde", "sizes": (1,)},
        {"hidden": (33, 17), "head": "beta", "sizes": (5,), "activation": "gelu"},
        {"hidden": (9,), "head": "squashed", "sizes": (2, 9), "numbers": 3, "critic_inputs": 35},
    ],
    ids=str,
)
def test_any_shape_learns_in_any_minibatches(isa, net_of, shape, optimizer):
    net = net_of(isa=isa, **shape)
    net.remember()
    batch = batch_of(net, 300)
    batch["ref_log_prob"] = batch["log_prob"] - np.float32(0.01)
    if net.options:
        batch["mask"] = np.ones((300, net.options), bool)
    sizes, order = [1, 7, 292], np.concatenate([np.random.default_rng(i).permutation(300) for i in range(2)])
    before = [x.copy() for x in net.tensors]
    said, table, epoch_of = learn(
        net, batch, sizes, epochs=2, optimizer=optimizer, order=order, lr=1e-3, standardize=1,
        clip=0.2, value_clip=0.2, vf_coef=0.5, ent_coef=0.01, kl_coef=0.1, max_grad_norm=0.5,
    )  # fmt: skip
    assert said[:6] == (6, 0, 0, 0, 0, 2)
    assert epoch_of.tolist() == [0, 0, 0, 1, 1, 1]
    assert np.isfinite(table).all()
    for x, old in zip(net.tensors, before, strict=True):
        assert np.isfinite(x).all()
        assert not np.array_equal(x, old)


@pytest.mark.parametrize("shared", [False, True])
def test_inputs_that_are_zero_in_all_rows_change_no_digit(isa, net_of, shared):
    """1e-40 in their place changes no sum either, but then the kernel computes the whole product."""
    unused, results = np.random.default_rng(0).random(900) < 0.8, []
    unused[384:768] = True  # a whole panel of the product
    for filler in (0.0, 1e-40):
        net = net_of(isa=isa, inputs=900, hidden=(70, 16), shared=shared)
        net.remember()
        batch = batch_of(net, 300)  # more than one pass through the network
        batch["features"][:, unused] = filler
        acted = net.act(batch["features"])
        learn(net, batch, [300], vf_coef=0.5, lr=0.1)
        results.append([*acted, *(x.copy() for x in net.tensors)])
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("shared", [False, True])
def test_what_only_the_critic_uses_learns_at_its_own_rate(isa, net_of, shared, optimizer):
    """Three times the scale moves these tensors three times as far in the first step, and the others as far as before."""
    moved = []
    for scale in (1.0, 3.0):
        net = net_of(isa=isa, inputs=3, hidden=(5,), shared=shared)
        net.remember()
        before = [x.copy() for x in net.tensors]
        learn(net, batch_of(net, 21), [21], optimizer=optimizer, vf_coef=0.5, lr=1e-3, critic_lr_scale=scale)
        moved.append([x - old for x, old in zip(net.tensors, before, strict=True)])
    of_critic = range(2, 4) if shared else range(2, 6)
    for t, (slow, fast) in enumerate(zip(*moved, strict=True)):
        np.testing.assert_allclose(fast, (3 if t in of_critic else 1) * slow, rtol=2e-3, atol=1e-6, err_msg=str(t))


def test_too_much_divergence_stops_before_the_step(net_of):
    net = net_of()
    net.remember()
    batch = batch_of(net, 10)
    batch["log_prob"] = batch["log_prob"] - 1
    before = [x.copy() for x in net.tensors]
    said, _, _ = learn(net, batch, [10], kl_limit=0.1)
    assert said[:2] == (0, 1)
    assert all(np.array_equal(x, old) for x, old in zip(net.tensors, before, strict=True))


def test_three_bad_gradients_in_a_row_end_the_update_and_change_nothing(net_of):
    net = net_of()
    net.remember()
    batch = batch_of(net, 10)
    batch["target"][:] = np.nan
    before = [x.copy() for x in net.tensors]
    said, _, _ = learn(net, batch, [2] * 5, vf_coef=1.0)
    assert said[:5] == (0, 0, 3, 3, 1)
    assert all(np.array_equal(x, old) for x, old in zip(net.tensors, before, strict=True))


def test_the_second_clip_stops_the_gradient_of_bad_actions_that_became_likely(net_of):
    """Ratios of e² and advantages of -1: beyond a bound of 3 nothing pulls, below one of 9 all of it does."""
    moved = {}
    for bound in (3.0, 9.0, -1.0):
        net = net_of(hidden=(4,))
        net.remember()
        batch = batch_of(net, 10)
        batch["advantage"][:] = -1.0
        batch["log_prob"] = batch["log_prob"] - 2
        before = [x.copy() for x in net.tensors]
        _, table, _ = learn(net, batch, [10], dual_clip=bound)
        moved[bound] = (table[0, 0], max(np.abs(x - old).max() for x, old in zip(net.tensors, before, strict=True)))
    assert moved[3.0] == (pytest.approx(3.0), 0.0)
    assert moved[9.0][1] > 0.01
    assert moved[9.0] == moved[-1.0]


@pytest.mark.parametrize("n", [1, 21, 700])
@pytest.mark.parametrize(
    "head",
    [
        {"sizes": (3,)},
        {"sizes": (2, 4)},
        {"head": "gaussian", "sizes": (2,)},
        {"head": "squashed", "sizes": (2,)},
        {"head": "gsde", "sizes": (2,)},
        {"head": "beta", "sizes": (2,)},
        {"head": "gsde", "sizes": (3, 2), "numbers": 2},
        {"head": "beta", "sizes": (3,), "numbers": 2},
    ],
    ids=str,
)
def test_log_probs_of_actions_are_those_they_were_drawn_with(isa, net_of, head, n):
    net = net_of(isa=isa, inputs=3, hidden=(5,), **head)
    obs = np.random.default_rng(0).normal(size=(n, 3)).astype(np.float32)
    action, _, drawn, _ = net.act(obs)
    found = np.full(n, np.nan, np.float32)
    kernel.net_log_probs(net.handle, n, obs, action, None, found)
    np.testing.assert_allclose(found, drawn, rtol=1e-4, atol=1e-5)
    net.tensors[-1][..., 0] += np.float32(0.5)  # the first of the policy's last biases, or of its spreads
    kernel.net_log_probs(net.handle, n, obs, action, None, found)
    assert not np.allclose(found, drawn, rtol=1e-3)


def test_log_probs_are_those_among_the_allowed(isa, net_of):
    net = net_of(isa=isa, inputs=3, hidden=(5,), sizes=(3,))
    obs = np.random.default_rng(0).normal(size=(9, 3)).astype(np.float32)
    mask, action = np.tile(np.array([1, 0, 1], np.uint8), (9, 1)), np.zeros((9, 1), np.int64)
    found = np.empty(9, np.float32)
    kernel.net_log_probs(net.handle, 9, obs, action, mask, found)
    raw, _ = net.forward(obs)
    np.testing.assert_allclose(found, raw[:, 0] - np.log(np.exp(raw[:, [0, 2]]).sum(axis=1)), rtol=1e-4, atol=1e-5)
