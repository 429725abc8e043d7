"""Schedules as text, JSON and callables: read, written and bounded."""

from __future__ import annotations

import math

import pytest

from surefoot.errors import ConfigError
from surefoot.learn.schedule import Cosine, Linear, Piecewise, StepDecay, value_at
from surefoot.learn.schedule_text import extremes, parse_schedule, schedule_to_json


@pytest.mark.parametrize(
    ("written", "expected"),
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
def test_every_documented_notation_is_read(written: object, expected: object):
    assert parse_schedule(written) == expected


def test_a_callable_gets_progress_remaining_from_one_to_zero():
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


def test_the_error_shows_the_value_and_what_can_be_written():
    with pytest.raises(ConfigError, match=r"'quick'.*lin_3e-4"):
        parse_schedule("quick")
