"""CartPole by hand arithmetic; test_classic.py compares it with Gymnasium step by step."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.envs.builtin.cartpole import CartPole, CartPoleContinuous, CartPoleNoVel


def test_a_push_from_rest_follows_the_equations():
    after, reward, over = CartPole().advance(np.zeros((4, 1)), np.array([1]), np.random.default_rng(0))
    theta_acc = -(10 / 1.1) / (0.5 * (4 / 3 - 0.1 / 1.1))
    x_acc = 10 / 1.1 - 0.05 * theta_acc / 1.1
    assert after[:, 0] == pytest.approx([0.0, 0.02 * x_acc, 0.0, 0.02 * theta_acc])
    assert (reward[0], over[0]) == (1.0, False)


@pytest.mark.parametrize(("x", "theta", "lost"), [(2.3, 0.0, False), (2.41, 0.0, True), (0.0, 0.2095, True)])
def test_it_ends_beyond_the_track_and_beyond_twelve_degrees(x: float, theta: float, lost: bool):
    state = np.array([[x], [0.0], [theta], [0.0]])
    assert CartPole().advance(state, np.array([0]), np.random.default_rng(0))[2][0] == lost


def test_without_velocities_place_and_angle_are_seen():
    assert CartPoleNoVel().observe(np.array([[1.0], [2.0], [3.0], [4.0]])).tolist() == [[1.0, 3.0]]


def test_the_continuous_push_is_clipped_at_one():
    task, rng = CartPoleContinuous(), np.random.default_rng(0)
    state = task.start(rng, 3)
    one, more = (task.advance(state, np.full((3, 1), push, np.float32), rng)[0] for push in (1.0, 7.0))
    assert np.array_equal(one, more)


@pytest.mark.parametrize("task", [CartPole(), CartPoleContinuous()])
def test_pictures_move_with_the_cart(task: CartPole):
    here, there = task.draw(np.zeros(4)), task.draw(np.array([1.0, 0.0, 0.0, 0.0]))
    assert here.shape == (300, 400, 3)
    assert not np.array_equal(here, there)
