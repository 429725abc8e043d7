"""Values from text, intervals, and literals that run nothing."""

from __future__ import annotations

import math
from typing import Any

import pytest

from surefoot.data.kinds import Interval, choice, flag, integer, literal, matching, number_range, optional, real, sizes
from surefoot.errors import ConfigError


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (real(Interval()), " 1e-3 ", 1e-3),
        (integer(Interval()), "1e5", 100_000),
        (integer(Interval()), "1_000", 1000),
        (flag(), "True", True),
        (flag(), "off", False),
        (choice("a", "b"), "B", "b"),
        (choice("on_batch", "no", true="on_batch", false="no"), "true", "on_batch"),
        (matching("cpu|cuda", "cpu or cuda"), " cpu ", "cpu"),
        (sizes(), "64,64", (64, 64)),
        (sizes(), "[64]", (64,)),
        (sizes(), "", ()),
        (number_range(), "-1, 1.5", (-1.0, 1.5)),
        (optional(real(Interval())), "none", None),
        (optional(real(Interval())), "2", 2.0),
    ],
)
def test_text_becomes_a_value(kind: Any, text: str, value: object):
    got = kind.accept(kind.parse(text))
    assert got == value
    assert type(got) is type(value)


@pytest.mark.parametrize(
    ("interval", "words"),
    [
        (Interval(0, 1), "at least 0 and at most 1"),
        (Interval(0, open_low=True), "above 0"),
        (Interval(high=2, open_high=True), "below 2"),
        (Interval(), "finite"),
    ],
)
def test_an_interval_says_itself(interval: Interval, words: str):
    assert str(interval) == words


def test_an_interval_holds_its_closed_ends_and_nothing_infinite():
    assert 0.0 in Interval(0, 1)
    assert 0.0 not in Interval(0, 1, open_low=True)
    assert 1.0 not in Interval(0, 1, open_high=True)
    assert math.inf not in Interval()
    assert math.nan not in Interval()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("dict(a=-1.5, b=[1, 2])", {"a": -1.5, "b": [1, 2]}),
        ("{'a': True, 'b': None}", {"a": True, "b": None}),
        ("dict(f=nn.ReLU, g=[dict(pi=[1])])", {"f": "ReLU", "g": [{"pi": [1]}]}),
    ],
)
def test_a_literal_is_read(text: str, value: object):
    assert literal(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "open('x')",
        "dict(**{'a': 1})",
        "{**a}",
        "[i for i in x]",
        "1 + 1",
        "dict([('a', 1)])",
        "f'{x}'",
        "{[1]: 2}",
        "a\0",
    ],
)
def test_anything_that_would_run_is_refused(text: str):
    with pytest.raises(ConfigError, match="cannot read"):
        literal(text)
