"""Schedules against hand arithmetic and against torch's and SB3's meaning of the same words."""

from __future__ import annotations

import math

import pytest

from surefoot.errors import ConfigError
from surefoot.learn.schedule import Cosine, Linear, Piecewise, StepDecay, value_at
from surefoot.learn.schedule_text import extremes, parse_schedule, schedule_to_json


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
    ("written", "meant"),
    [
        (3e-4, 3e-4),
        (1, 1.0),
        ("1e-3", 1e-3),
        ("lin_3e-4", Linear(3e-4, 0.0)),
        ("lin_0.001", Linear(1e-3)),
        ("lin_3e-4_1e-5", Linear(3e-4, 1e-5)),
        ("cos_3e-4", Cosine(3e-4, 0.0)),
        ("cos_3e-4_1e-5", Cosine(3e-4, 1e-5)),
        ("0:3e-4,0.5:1e-4,1:0", Piecewise(((0.0, 3e-4), (0.5, 1e-4), (1.0, 0.0)))),
        (" 0.25:2, 1:1 ", Piecewise(((0.25, 2.0), (1.0, 1.0)))),
        ({"kind": "cosine", "start": 0.2}, Cosine(0.2)),
        ({"kind": "linear", "start": 0.2}, Linear(0.2)),
        ({"kind": "step", "start": 0.1, "every": 10.0, "factor": 0.5}, StepDecay(0.1, 10, 0.5)),
        ('{"kind": "piecewise", "points": [[0, 1], [1, 2]]}', Piecewise(((0.0, 1.0), (1.0, 2.0)))),
        (Linear(1.0), Linear(1.0)),
    ],
)
def test_everything_people_write_is_read(written: object, meant: object):
    assert parse_schedule(written) == meant


def test_a_callable_is_asked_for_progress_remaining_which_goes_from_one_to_zero():
    schedule = parse_schedule(lambda remaining: 0.1 + 0.2 * remaining**2)
    assert isinstance(schedule, Piecewise)
    assert len(schedule.points) == 1001
    assert value_at(schedule, progress=0.0, updates=0) == pytest.approx(0.3)
    assert value_at(schedule, progress=0.5, updates=0) == pytest.approx(0.1 + 0.2 * 0.25)
    assert value_at(schedule, progress=1.0, updates=0) == pytest.approx(0.1)


@pytest.mark.parametrize(
    "knob", [0.25, Linear(1.0, 0.5), Cosine(1.0, 0.5), StepDecay(1.0, 3, 0.5), Piecewise(((0.0, 1.0), (0.5, 3.0)))]
)
def test_json_and_back_is_the_same_knob(knob: object):
    assert parse_schedule(schedule_to_json(knob)) == knob  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("knob", "low_high"),
    [
        (0.5, (0.5, 0.5)),
        (Linear(0.2, 0.6), (0.2, 0.6)),
        (Cosine(0.6, 0.2), (0.2, 0.6)),
        (StepDecay(0.3, 2, 0.5), (0.0, 0.3)),
        (Piecewise(((0.0, 2.0), (0.5, -1.0), (1.0, 0.0))), (-1.0, 2.0)),
    ],
)
def test_extremes_are_the_bounds_of_all_values(knob: object, low_high: tuple[float, float]):
    assert extremes(knob) == low_high  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    "nonsense",
    [
        "quick",
        "lin_",
        "lin_1_2_3",
        "lin_fast",
        "{broken",
        None,
        True,
        [1, 2],
        "cos_",
        "cos_1_2_3",
        "0:1,fast:2",
        "0:1:2",
        "1:1,0:2",
        {"kind": "cosine"},
        {"kind": "exponential", "start": 1.0},
        {"kind": "step", "start": 1.0},
        {"kind": "piecewise", "points": [1, 2]},
        {"kind": "linear", "start": "x"},
        lambda remaining: "x",
        lambda: 1.0,
        lambda remaining: math.inf,
    ],
)
def test_nonsense_is_a_config_error(nonsense: object):
    with pytest.raises(ConfigError):
        parse_schedule(nonsense)


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


def test_the_error_says_what_would_work():
    with pytest.raises(ConfigError, match=r"'quick'.*lin_3e-4"):
        parse_schedule("quick")
