"""Pendulum and Acrobot, with the expected numbers from their equations of motion."""

import math

import numpy as np
import pytest

from surefoot.envs.builtin.classic import CLASSIC
from surefoot.envs.builtin.pendulum_acrobot import Acrobot, Pendulum, _square

_X = np.random.default_rng(0).uniform(-8.0, 8.0, 4096)
RNG = np.random.default_rng(0)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_squares_are_those_of_scalars_to_the_last_digit(kind: type):
    x = _X.astype(kind)
    assert np.array_equal(_square(x), [one**2 for one in x])
    assert _square(x).dtype == kind


def test_a_pendulum_is_cut_every_200_steps() -> None:
    world = CLASSIC["Pendulum-v1"](2)
    world.reset(seed=0)
    cuts = [t for t in range(1, 601) if world.step(np.zeros((2, 1), np.float32)).truncated.all()]
    assert cuts == [200, 400, 600]


def test_a_hanging_pendulum_costs_pi_squared_and_feels_only_the_torque():
    state, reward, terminated = Pendulum().advance(np.array([[math.pi], [0.0]]), np.array([[2.0]], np.float32), RNG)
    assert reward[0] == pytest.approx(-(math.pi**2) - 0.001 * 4.0)
    assert state[1, 0] == pytest.approx(3.0 * 2.0 * 0.05)
    assert state[0, 0] == pytest.approx(math.pi + 0.3 * 0.05)
    assert not terminated[0]


def test_a_torque_beyond_the_bound_is_clipped():
    state = np.array([[0.3], [0.1]])
    strong, limit = (Pendulum().advance(state, np.array([[x]], np.float32), RNG) for x in (5.0, 2.0))
    assert np.array_equal(strong[0], limit[0])
    assert np.array_equal(strong[1], limit[1])


def test_an_acrobot_that_hangs_at_rest_stays_there_without_torque():
    state, reward, up = Acrobot().advance(np.zeros((4, 1)), np.array([1]), RNG)
    assert np.abs(state).max() < 1e-12
    assert reward[0] == -1.0
    assert not up[0]


def test_an_acrobot_above_the_line_ends_with_reward_zero():
    _, reward, up = Acrobot().advance(np.array([[math.pi], [0.0], [0.0], [0.0]]), np.array([1]), RNG)
    assert up[0]
    assert reward[0] == 0.0
