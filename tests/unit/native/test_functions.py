"""The kernel's own tanh, exp, log and the rest, against numpy's in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest

from surefoot.native import kernel

WHICH = (
    *("tanh", "exp", "expm1", "log", "log1p", "sigmoid", "log_tanh_slope", "sin_turn", "cos_turn"),
    *("normal_below", "softplus", "lgamma", "digamma", "trigamma"),
)


def of(isa: str, name: str, x: np.ndarray | list[float]) -> np.ndarray:
    x = np.ascontiguousarray(x, np.float32)
    y = np.full_like(x, -7.0)
    kernel.function(isa, WHICH.index(name), x.size, x, y)
    return y


def spread(*ranges: tuple[float, float]) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.concatenate([rng.uniform(low, high, 20_000) for low, high in ranges]).astype(np.float32)


def units(found: np.ndarray, true: np.ndarray) -> float:
    """The largest error in units in the last place of the true value."""
    return float(np.max(np.abs(found - true) / np.spacing(np.abs(true).astype(np.float32))))


def slope(u: np.ndarray) -> np.ndarray:
    """log(1 - tanh² u) = -2 log cosh u, without overflow."""
    return -2 * (np.logaddexp(u, -u) - np.log(2))


lgamma, erfc = (np.vectorize(f, otypes=[float]) for f in (math.lgamma, math.erfc))
# Central differences of eighth order, of the first and of the second derivative.
FIRST = np.array([1 / 280, -4 / 105, 1 / 5, -4 / 5, 0, 4 / 5, -1 / 5, 4 / 105, -1 / 280])
SECOND = np.array([-1 / 560, 8 / 315, -1 / 5, 8 / 5, -205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560])


def derivative(x: np.ndarray, stencil: np.ndarray, order: int) -> np.ndarray:
    """A derivative of math.lgamma, to about ten digits."""
    step = 0.05 * x
    return sum(w * lgamma(x + i * step) for i, w in zip(range(-4, 5), stencil, strict=True)) / step**order


@pytest.mark.parametrize(
    ("name", "ranges", "definition", "most"),
    [
        ("tanh", [(-9, 9), (-1e-3, 1e-3)], np.tanh, 6),
        ("exp", [(-87, 88), (-1, 1)], np.exp, 2),
        ("expm1", [(-20, 20), (-1, 1), (-1e-4, 1e-4)], np.expm1, 6),
        ("log", [(1e-30, 1e-3), (0.5, 2), (1, 1e30)], np.log, 4),
        ("log1p", [(0, 1), (0, 1e-6)], np.log1p, 4),
        ("softplus", [(-30, 30), (-1, 1)], lambda x: np.logaddexp(x, 0), 6),
        ("lgamma", [(1.0001, 12), (12, 2e4)], lgamma, 1),
        ("digamma", [(1.0001, 1.3), (1.7, 12), (12, 2e4)], lambda x: derivative(x, FIRST, 1), 1),
        ("trigamma", [(1.0001, 12), (12, 2e4)], lambda x: derivative(x, SECOND, 2), 1),
    ],
)
def test_relative_error_is_a_few_units_in_the_last_place(isa, name, ranges, definition, most):
    x = spread(*ranges)
    assert units(of(isa, name, x), definition(x.astype(np.float64))) < most


@pytest.mark.parametrize(
    ("name", "ranges", "definition"),
    [
        ("sigmoid", [(-30, 30)], lambda x: 1 / (1 + np.exp(-x))),
        ("sin_turn", [(0, 1)], lambda x: np.sin(2 * np.pi * x)),
        ("cos_turn", [(0, 1)], lambda x: np.cos(2 * np.pi * x)),
        ("log_tanh_slope", [(-1, 1)], slope),
        ("normal_below", [(-9, 9)], lambda x: 0.5 * erfc(-x / np.sqrt(2))),
    ],
)
def test_absolute_error_is_below_three_ten_millionths(isa, name, ranges, definition):
    x = spread(*ranges)
    np.testing.assert_allclose(of(isa, name, x), definition(x.astype(np.float64)), rtol=0, atol=3e-7)


def test_the_slope_of_a_far_tanh_is_relatively_exact(isa):
    x = spread((-1e4, -1), (1, 1e4))
    np.testing.assert_allclose(of(isa, "log_tanh_slope", x), slope(x.astype(np.float64)), rtol=3e-7)


def test_the_far_tail_of_a_normal_is_relatively_exact(isa):
    x = spread((-12, 0))
    np.testing.assert_allclose(of(isa, "normal_below", x), 0.5 * erfc(-x.astype(float) / np.sqrt(2)), rtol=6e-6)


def test_derivatives_of_log_gamma_at_whole_and_half_numbers(isa):
    """ψ(n) = Hₙ₋₁ - γ, ψ(½ + n) = 2 Σ 1/(2k - 1) - γ - 2 log 2, ψ'(n) = π²/6 - Σ 1/k²."""
    n = np.arange(1, 40)
    harmonic = np.concatenate([[0], np.cumsum(1 / n[:-1])])
    np.testing.assert_allclose(of(isa, "digamma", n), harmonic - np.euler_gamma, rtol=1e-7)
    odd = 2 * np.cumsum(1 / (2 * n - 1)) - np.euler_gamma - 2 * np.log(2)
    np.testing.assert_allclose(of(isa, "digamma", n + 0.5), odd, rtol=1e-7)
    squares = np.concatenate([[0], np.cumsum(1 / n[:-1] ** 2)])
    np.testing.assert_allclose(of(isa, "trigamma", n), np.pi**2 / 6 - squares, rtol=1e-7)
    np.testing.assert_allclose(of(isa, "lgamma", n), lgamma(n), rtol=1e-7, atol=3e-14)


@pytest.mark.parametrize("name", WHICH)
def test_nan_stays_nan(isa, name):
    strange = np.array([0x7FC00123, 0xFFC00000, 0x7F800001], np.uint32).view(np.float32)  # payloads, signs, signalling
    assert np.isnan(of(isa, name, [np.nan, -np.nan, *strange])).all()


def test_ends_are_finite_and_on_the_right_side(isa):
    ends = [-np.inf, -3e38, 3e38, np.inf]
    np.testing.assert_allclose(of(isa, "tanh", ends), [-1, -1, 1, 1], atol=3e-7)
    assert np.abs(of(isa, "tanh", ends)).max() <= 1.0
    low, high = of(isa, "exp", ends)[[0, 3]]
    assert 0 < low < 2e-38
    assert 1e38 < high < np.inf
    np.testing.assert_allclose(of(isa, "expm1", ends)[:2], -1)
    # Exactly: SiLU multiplies it with its input.
    assert of(isa, "sigmoid", [*ends, -1e9, -20.0, 20.0, 1e9]).tolist() == [0, 0, 1, 1, 0, 0, 1, 1]


def test_round_places_are_exact(isa):
    assert of(isa, "tanh", [0.0, -0.0]).tolist() == [0.0, 0.0]
    assert of(isa, "exp", [0.0]).tolist() == [1.0]
    assert of(isa, "expm1", [0.0]).tolist() == [0.0]
    assert of(isa, "log", [1.0]).tolist() == [0.0]
    assert of(isa, "log1p", [0.0]).tolist() == [0.0]
    assert of(isa, "sigmoid", [0.0]).tolist() == [0.5]
    quarters = [0.0, 0.25, 0.5, 0.75]
    assert of(isa, "sin_turn", quarters).tolist() == [0.0, 1.0, 0.0, -1.0]
    assert of(isa, "cos_turn", quarters).tolist() == [1.0, 0.0, -1.0, 0.0]


@pytest.mark.parametrize("n", [0, 1, 3, 4, 15, 16, 17, 33])
def test_neighbours_and_what_comes_after_do_not_matter(isa, n):
    x = spread((-5, 5))[: n + 1].copy()
    y = np.full(n + 1, -7.0, np.float32)
    kernel.function(isa, 0, n, x[:n], y[:n])
    assert y[n] == -7.0
    assert y[:n].tolist() == [of(isa, "tanh", x[i : i + 1])[0] for i in range(n)]


def test_the_instruction_sets_end_with_the_one_every_machine_has():
    assert kernel.instruction_sets()[-1] == "base"
