"""Networks with memory: what they carry from step to step, and the gradient through time, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.native import kernel

F = np.float32
NETS = [
    {"memory": "gru", "memory_size": 1, "hidden": ()},
    {"memory": "gru", "memory_size": 7, "hidden": (5,), "shared": True},
    {"memory": "gru", "memory_size": 17, "hidden": (8, 3), "critic_inputs": 2},
    {"memory": "lstm", "memory_size": 3, "hidden": (70,)},
    {"memory": "lstm", "memory_size": 33, "hidden": (), "shared": True},
]


def states(net, streams, seed=0):
    """A random state of each memory."""
    carried = net.memory_size * (2 if net.memory == "lstm" else 1)
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(streams, carried)).astype(F) for _ in net.memories]


@pytest.mark.parametrize("net", NETS, ids=str)
@pytest.mark.parametrize("streams", [1, 5, 300])
def test_acting_carries_the_memory_on_and_forgets_where_an_episode_begins(net_of, isa, net, streams):
    net = net_of(isa=isa, **net)
    rng, carry = np.random.default_rng(1), states(net, streams)
    expected = [x.astype(float) for x in carry]
    for _ in range(3):
        obs, start = rng.normal(size=(streams, net.inputs)).astype(F), rng.random(streams) < 0.3
        raw, value = net.walk(obs[None], start[None], expected)
        action, _, _, found = net.act(obs, deterministic=True, start=start, carry=carry)
        np.testing.assert_allclose(found, value[0], atol=2e-5)
        np.testing.assert_array_equal(action[:, 0], raw[0].argmax(axis=1))
        for mine, its in zip(carry, expected, strict=True):
            np.testing.assert_allclose(mine, its, atol=2e-5)


def test_a_value_leaves_the_memory_as_it_is(net_of, isa):
    net = net_of(isa=isa, **NETS[3])
    carry, value = states(net, 4)[1], np.zeros(4, F)
    before, obs = carry.copy(), np.ones((4, net.inputs), F)
    kernel.net_values(net.handle, 4, obs, carry, value)
    expected = net.walk(obs[None], np.zeros((1, 4), bool), [carry.astype(float), carry.astype(float)])[1][0]
    np.testing.assert_allclose(value, expected, atol=2e-5)
    np.testing.assert_array_equal(carry, before)


def columns_of(net, steps, columns, seed=0):
    """What an update of a network with memory gets: T steps of B columns, some of them not to be learned from."""
    rng = np.random.default_rng(seed)
    n = steps * columns
    return {
        "features": rng.normal(size=(n, net.inputs)).astype(F),
        "action": rng.integers(0, 3, (n, 1)),
        "log_prob": np.full(n, -1.1, F),
        "value": np.zeros(n, F),
        "advantage": rng.normal(size=n).astype(F),
        "target": rng.normal(size=n).astype(F),
        "start": rng.random(n) < 0.2,
        "valid": rng.random(n) < 0.8,
        "carry": states(net, columns, 1)[0],
        "critic_carry": states(net, columns, 2)[-1] if len(net.memories) > 1 else None,
    }


def loss(net, batch, steps):
    """Policy loss without a clip, and value loss with weight 1: means over the valid steps."""
    shape = (steps, -1)
    carry = [x.astype(float) for x in (batch["carry"], batch["critic_carry"]) if x is not None]
    raw, value = net.walk(batch["features"].reshape(*shape, net.inputs), batch["start"].reshape(shape), carry)
    raw, value, valid = raw.reshape(-1, raw.shape[-1]), value.ravel(), batch["valid"]
    log_prob = raw - np.log(np.exp(raw).sum(axis=1, keepdims=True))
    ratio = np.exp(np.take_along_axis(log_prob, batch["action"], axis=1)[:, 0] - batch["log_prob"])
    each = -batch["advantage"] * ratio + 0.5 * (value - batch["target"]) ** 2
    return each[valid].mean()


def learn(net, batch, steps, sizes, **settings):
    columns = len(batch["value"]) // steps
    return kernel.net_learn(
        net.handle,
        samples=len(batch["value"]),
        length=steps,
        minibatches=len(sizes),
        epochs=1,
        **{
            "clip": 1e6,
            "value_clip": -1.0,
            "dual_clip": -1.0,
            "log_ratio_limit": 20.0,
            "max_grad_norm": 1e6,
            "kl_limit": -1.0,
            "vf_coef": 1.0,
            "ent_coef": 0.0,
            "critic_lr_scale": 1.0,
            "kl_coef": 0.0,
            "standardize": 0,
            "optimizer": "sgd",
            "lr": 1.0,
            "weight_decay": 0.0,
            "eps": 1e-5,
            "momentum": 0.0,
            "beta1": 0.9,
            "beta2": 0.999,
            "alpha": 0.99,
            "max_bad_steps": 3,
            "bad_in_a_row": 0,
            **settings,
        },
        **batch,
        ref_log_prob=None,
        mask=None,
        order=np.arange(columns)[::-1].copy(),
        sizes=np.array(sizes),
        table=np.zeros((len(sizes), 11)),
        epoch_of=np.zeros(len(sizes), np.int32),
    )


@pytest.mark.parametrize("net", NETS, ids=str)
def test_one_step_of_descent_goes_down_the_gradient_through_time(net_of, isa, net):
    net, steps, columns = net_of(isa=isa, **net), 6, 5
    net.remember()
    batch, h, rng = columns_of(net, steps, columns), 1e-3, np.random.default_rng(3)
    gradients = []
    for x in net.tensors:
        flat = x.reshape(-1)
        for i in rng.choice(flat.size, min(4, flat.size), replace=False):
            kept = flat[i]
            high, low = kept + F(h), kept - F(h)
            flat[i] = high
            above = loss(net, batch, steps)
            flat[i] = low
            gradients.append((flat, i, kept, (above - loss(net, batch, steps)) / (float(high) - float(low))))
            flat[i] = kept
    assert learn(net, batch, steps, [columns])[0] == 1
    for flat, i, kept, gradient in gradients:
        assert kept - flat[i] == pytest.approx(gradient, rel=2e-3, abs=3e-5)


def test_columns_of_padding_only_are_left_out(net_of, isa):
    net = net_of(isa=isa, **NETS[1])
    net.remember()
    batch = columns_of(net, 4, 3)
    batch["valid"].reshape(4, 3)[:, 1] = False
    assert learn(net, batch, 4, [1, 1, 1])[0] == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"length": 5}, "no columns of 5 steps"),
        ({"carry": None}, "bytes-like"),
        ({"carry": np.zeros((3, 6), F)}, "carry"),
        ({"start": None}, "bytes-like"),
    ],
)
def test_an_update_whose_columns_do_not_fit_is_refused(net_of, change, message):
    net = net_of(**NETS[1])
    net.remember()
    batch = columns_of(net, 4, 3)
    with pytest.raises((ValueError, TypeError), match=message):
        learn(net, batch | {k: v for k, v in change.items() if k != "length"}, change.get("length", 4), [3])
