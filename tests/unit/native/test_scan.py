"""The kernel's GRU and LSTM over time against numpy's definition of them, and their gradients against differences."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.native import kernel

F = np.float32
SHAPES = [(1, 1, 1), (1, 8, 64), (1, 17, 33), (2, 3, 16), (5, 1, 40), (17, 1, 33), (6, 2, 17), (7, 3, 32), (4, 4, 5),
          (4, 7, 9), (3, 8, 24), (3, 13, 31), (2, 3, 130), (9, 2, 100)]  # fmt: skip
"""(T, N, size): whole vectors and odd ones, one to many rows, few enough to go without panels and more."""


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def unrolled(gates, inward, carry, start, weight, bias):
    """hidden [T, N, size] and what is carried on, in float64."""
    inward, weight, bias = (x.astype(np.float64) for x in (inward, weight, bias))
    size, hidden = weight.shape[1], []
    h, c = carry[:, :size].astype(np.float64), carry[:, size:].astype(np.float64)
    for t, x in enumerate(inward):
        if start is not None:
            h, c = np.where(start[t][:, None], 0, h), np.where(start[t][:, None], 0, c)
        back = h @ weight.T + bias
        if gates == 4:
            i, f, g, o = np.split(x + back, 4, axis=1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
        else:
            (r, z, n), (back_r, back_z, back_n) = np.split(x, 3, axis=1), np.split(back, 3, axis=1)
            r, z = sigmoid(r + back_r), sigmoid(z + back_z)
            h = (1 - z) * np.tanh(n + r * back_n) + z * h
        hidden.append(h)
    return np.stack(hidden), h if gates == 3 else np.concatenate([h, c], axis=1)


def case(gates, steps, streams, size, starts=0.3, seed=0):
    """(inward, carry, start, weight, bias)"""
    rng = np.random.default_rng(seed)
    carried = size * (2 if gates == 4 else 1)
    inward, carry = (
        rng.normal(size=(steps, streams, gates * size)).astype(F),
        rng.normal(size=(streams, carried)).astype(F),
    )
    start = None if starts is None else rng.random((steps, streams)) < starts
    weight = (rng.normal(size=(gates * size, size)) / np.sqrt(size)).astype(F)
    return inward, carry, start, weight, rng.normal(size=gates * size).astype(F)


def forward(isa, inward, carry, start, weight, bias, *, keep=False):
    """(hidden, carried, gates, saved), the last two None unless `keep`."""
    (steps, streams, width), size = inward.shape, weight.shape[1]
    hidden, carried = np.full((steps, streams, size), np.nan, F), np.full(carry.shape, np.nan, F)
    gates, saved = (np.full(inward.shape, np.nan, F), np.full_like(hidden, np.nan)) if keep else (None, None)
    kernel.scan_forward(
        instruction_set=isa,
        gates_per_unit=width // size,
        streams=streams,
        size=size,
        steps=steps,
        start=start,
        inward=inward,
        carry=carry,
        weight=weight,
        bias=bias,
        hidden=hidden,
        carried=carried,
        gates=gates,
        saved=saved,
    )
    return hidden, carried, gates, saved


def backward(isa, inward, carry, start, weight, bias, d_hidden, d_carried):
    """(d_inward, d_carry, d_weight, d_bias)"""
    hidden, _, gates, saved = forward(isa, inward, carry, start, weight, bias, keep=True)
    (steps, streams, width), size = inward.shape, weight.shape[1]
    d_inward, before, d_carry = (np.full_like(x, np.nan) for x in (inward, hidden, carry))
    d_onward = None if width == 4 * size else np.full_like(inward, np.nan)
    kernel.scan_backward(
        instruction_set=isa,
        gates_per_unit=width // size,
        streams=streams,
        size=size,
        steps=steps,
        start=start,
        carry=carry,
        weight=weight,
        hidden=hidden,
        gates=gates,
        saved=saved,
        d_hidden=d_hidden,
        d_carried=d_carried,
        d_inward=d_inward,
        d_onward=d_onward,
        before=before,
        d_carry=d_carry,
    )
    rows = (d_inward if d_onward is None else d_onward).reshape(-1, width)
    return d_inward, d_carry, rows.T @ before.reshape(-1, size), rows.sum(0)


@pytest.mark.parametrize("gates", [3, 4])
@pytest.mark.parametrize("shape", SHAPES)
def test_forward_is_the_definition(isa, gates, shape):
    for starts in (None, 0.0, 0.3, 1.0):
        given = case(gates, *shape, starts)
        hidden, carried, _, _ = forward(isa, *given)
        expected, carried_on = unrolled(gates, *given)
        np.testing.assert_allclose(hidden, expected, rtol=1e-5, atol=2e-6)
        np.testing.assert_allclose(carried, carried_on, rtol=1e-5, atol=4e-6)


@pytest.mark.parametrize("gates", [3, 4])
@pytest.mark.parametrize(("inputs", "streams", "size"), [(1, 1, 1), (5, 3, 24), (64, 8, 64), (33, 19, 31)])
def test_a_step_begins_with_its_input(isa, gates, inputs, streams, size):
    rng = np.random.default_rng(1)
    _, carry, start, weight, bias = case(gates, 1, streams, size)
    x, weight_in = rng.normal(size=(streams, inputs)).astype(F), rng.normal(size=(gates * size, inputs)).astype(F)
    bias_in = rng.normal(size=gates * size).astype(F)
    hidden, carried = np.full((streams, size), np.nan, F), np.full_like(carry, np.nan)
    kernel.scan_step(
        instruction_set=isa,
        gates_per_unit=gates,
        streams=streams,
        size=size,
        inputs=inputs,
        start=start,
        x=x,
        weight_in=weight_in,
        bias_in=bias_in,
        carry=carry,
        weight=weight,
        bias=bias,
        hidden=hidden,
        carried=carried,
    )
    inward = (x.astype(np.float64) @ weight_in.T + bias_in)[None]
    expected, carried_on = unrolled(gates, inward, carry, start, weight, bias)
    np.testing.assert_allclose(hidden, expected[0], rtol=1e-5, atol=4e-6)
    np.testing.assert_allclose(carried, carried_on, rtol=1e-5, atol=8e-6)


@pytest.mark.parametrize("gates", [3, 4])
def test_a_product_deeper_than_a_panel_is_summed_over_all_of_it(isa, gates):
    given = case(gates, 2, 9, 390)
    hidden, _, _, _ = forward(isa, *given)
    np.testing.assert_allclose(hidden, unrolled(gates, *given)[0], rtol=1e-5, atol=4e-6)


@pytest.mark.parametrize("gates", [3, 4])
@pytest.mark.parametrize("shape", SHAPES)
def test_gradients_are_what_differences_say(isa, gates, shape):
    """Along random directions of everything at once, by central differences of the definition in float64."""
    rng = np.random.default_rng(7)
    inward, carry, start, weight, bias = case(gates, *shape)
    d_hidden = rng.normal(size=(*shape[:2], shape[2])).astype(F)
    d_carried = rng.normal(size=carry.shape).astype(F)
    for parts in ((d_hidden, d_carried), (d_hidden, None), (None, d_carried)):
        grads = backward(isa, inward, carry, start, weight, bias, *parts)

        def loss(inward, carry, weight, bias, parts=parts):
            found = unrolled(gates, inward, carry, start, weight, bias)
            return sum(float((x * d).sum()) for x, d in zip(found, parts, strict=True) if d is not None)

        at = [x.astype(np.float64) for x in (inward, carry, weight, bias)]
        for which in range(4):
            way = [rng.normal(size=x.shape) * (i == which) for i, x in enumerate(at)]
            there = loss(*(x + 1e-5 * w for x, w in zip(at, way, strict=True)))
            back = loss(*(x - 1e-5 * w for x, w in zip(at, way, strict=True)))
            slope = float((grads[which] * way[which]).sum())
            size = float(np.abs(grads[which] * way[which]).sum())
            assert slope == pytest.approx((there - back) / 2e-5, abs=2e-5 * max(1.0, size)), which


@pytest.mark.parametrize("gates", [3, 4])
def test_nothing_passes_a_start_neither_forward_nor_backward(isa, gates):
    inward, carry, _, weight, bias = case(gates, 5, 3, 20, None)
    start = np.zeros((5, 3), bool)
    start[2] = True
    d_hidden = np.zeros((5, 3, 20), F)
    d_hidden[2:] = 1
    d_inward, d_carry, _, _ = backward(isa, inward, carry, start, weight, bias, d_hidden, None)
    assert not d_inward[:2].any()
    assert not d_carry.any()
    assert d_inward[2:].any(axis=2).all()
    carry[:] = np.nan
    hidden, carried, _, _ = forward(isa, inward, carry, start, weight, bias)
    assert np.isnan(hidden[:2]).all()
    assert np.isfinite(hidden[2:]).all()
    assert np.isfinite(carried).all()


@pytest.mark.parametrize("gates", [3, 4])
@pytest.mark.parametrize("steps", [1, 40])
def test_a_number_that_is_not_finite_stays_in_its_stream(isa, gates, steps):
    inward, carry, _, weight, bias = case(gates, steps, 6, 20, None)
    inward[0, 2, 3] = np.nan
    hidden, _, _, _ = forward(isa, inward, carry, None, weight, bias)
    assert np.isnan(hidden[0, 2, 3])
    assert np.isfinite(np.delete(hidden, 2, axis=1)).all()


def test_what_is_kept_for_gradients_is_there_or_not_but_never_half():
    inward, carry, start, weight, bias = case(4, 2, 3, 4)
    hidden, carried = np.empty((2, 3, 4), F), np.empty_like(carry)
    with pytest.raises(ValueError, match="gates and saved are both arrays"):
        kernel.scan_forward(
            instruction_set="base",
            gates_per_unit=4,
            streams=3,
            size=4,
            steps=2,
            start=start,
            inward=inward,
            carry=carry,
            weight=weight,
            bias=bias,
            hidden=hidden,
            carried=carried,
            gates=inward.copy(),
            saved=None,
        )


def test_a_gru_needs_room_for_the_gradient_of_its_onward_part():
    z = lambda *shape: np.zeros(shape, F)  # noqa: E731
    with pytest.raises(TypeError):
        kernel.scan_backward(
            instruction_set="base",
            gates_per_unit=3,
            streams=2,
            size=3,
            steps=1,
            start=None,
            carry=z(2, 3),
            weight=z(9, 3),
            hidden=z(1, 2, 3),
            gates=z(1, 2, 9),
            saved=z(1, 2, 3),
            d_hidden=None,
            d_carried=None,
            d_inward=z(1, 2, 9),
            d_onward=None,
            before=z(1, 2, 3),
            d_carry=z(2, 3),
        )
