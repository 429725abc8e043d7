"""MountainCar by hand arithmetic; test_classic.py compares it with Gymnasium step by step."""

from __future__ import annotations

import math

import numpy as np
import pytest

from surefoot.envs.builtin.mountain_car import MountainCar, MountainCarContinuous

RNG = np.random.default_rng(0)


def test_coasting_follows_the_slope():
    after, reward, over = MountainCar().advance(np.array([[-0.5], [0.01]]), np.array([1]), RNG)
    velocity = 0.01 - 0.0025 * math.cos(-1.5)
    assert after[:, 0] == pytest.approx([-0.5 + velocity, velocity])
    assert (reward[0], over[0]) == (-1.0, False)


def test_the_left_wall_stops_the_car():
    after, _, _ = MountainCar().advance(np.array([[-1.19], [-0.07]]), np.array([0]), RNG)
    assert after[:, 0].tolist() == [-1.2, 0.0]


def test_the_continuous_car_earns_a_hundred_at_the_goal_less_the_force():
    state = np.array([[0.44], [0.05]], np.float32)
    after, reward, over = MountainCarContinuous().advance(state, np.array([[0.5]], np.float32), RNG)
    assert (over[0], after.dtype) == (True, np.float32)
    assert reward[0] == pytest.approx(100.0 - 0.1 * 0.25)


@pytest.mark.parametrize("task", [MountainCar(), MountainCarContinuous()])
def test_pictures_show_where_the_car_is(task: MountainCar):
    assert not np.array_equal(task.draw(np.array([-1.0, 0.0])), task.draw(np.array([0.2, 0.0])))
