"""Schedules against hand arithmetic and against torch's and SB3's meaning of the same words."""

from __future__ import annotations

import math

import pytest

from surefoot.errors import ConfigError
from surefoot.learn.schedule import Cosine, Linear, Piecewise, StepDecay, value_at


def test_a_plain_number_never_moves():
    assert value_at(0.3, progress=0.7, updates=99) == 0.3


@pytest.mark.parametrize(("progress", "value"), [(0.0, 1e-3), (0.25, 7.5e-4), (0.5, 5e-4), (1.0, 0.0)])
def test_a_line_falls_to_zero_over_the_run(progress: float, value: float):
    assert value_at(Linear(1e-3), progress=progress, updates=0) == pytest.approx(value)


def test_a_line_ends_exactly_where_it_says():
    assert value_at(Linear(0.3, 0.1), progress=1.0, updates=0) == 0.1
    assert value_at(Linear(0.3, 0.1), progress=0.0, updates=0) == 0.3


@pytest.mark.parametrize(
    ("progress", "value"), [(0.0, 3e-4), (1 / 3, 2.275e-4), (0.5, 1.55e-4), (2 / 3, 8.25e-5), (1.0, 1e-5)]
)
def test_a_cosine_is_flat_at_both_ends_and_halfway_in_the_middle(progress: float, value: float):
    assert value_at(Cosine(3e-4, 1e-5), progress=progress, updates=0) == pytest.approx(value)


def test_a_cosine_ends_exactly_where_it_says():
    assert value_at(Cosine(0.3, 0.1), progress=1.0, updates=0) == 0.1
    assert value_at(Cosine(0.3, 0.1), progress=0.0, updates=0) == 0.3
    assert value_at(Cosine(1.0), progress=2.0, updates=0) == 0.0


def test_progress_outside_the_run_is_held_at_its_ends():
    assert value_at(Linear(1.0, 0.5), progress=-3.0, updates=0) == 1.0
    assert value_at(Linear(1.0, 0.5), progress=1.2, updates=0) == 0.5


@pytest.mark.parametrize(("updates", "value"), [(0, 3e-4), (99, 3e-4), (100, 2.7e-4), (199, 2.7e-4), (200, 2.43e-4)])
def test_step_decay_multiplies_after_every_so_many_updates(updates: int, value: float):
    assert value_at(StepDecay(3e-4, every=100, factor=0.9), progress=0.5, updates=updates) == pytest.approx(value)


@pytest.mark.parametrize(
    ("progress", "value"), [(0.0, 1.0), (0.2, 1.0), (0.3, 1.5), (0.4, 2.0), (0.6, 1.0), (0.8, 0.0), (1.0, 0.0)]
)
def test_pieces_are_straight_between_points_and_flat_outside(progress: float, value: float):
    pieces = Piecewise(((0.2, 1.0), (0.4, 2.0), (0.8, 0.0)))
    assert value_at(pieces, progress=progress, updates=0) == pytest.approx(value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Linear(math.nan),
        lambda: StepDecay(1.0, 0, 0.9),
        lambda: StepDecay(1.0, 10, 1.1),
        lambda: StepDecay(1.0, 10, 0.0),
        lambda: Piecewise(()),
        lambda: Piecewise(((0.5, 1.0), (0.5, 2.0))),
        lambda: Piecewise(((0.0, 1.0), (1.5, 2.0))),
        lambda: Piecewise(((0.0, math.inf),)),
    ],
)
def test_a_schedule_that_cannot_work_cannot_be_made(make: object):
    with pytest.raises(ConfigError):
        make()  # pyright: ignore[reportCallIssue]
