"""Values from text, intervals in words, and literals that run nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest

from surefoot.data.kinds import Interval, choice, flag, integer, literal, matching, number_range, optional, real, sizes
from surefoot.data.knobs import Config, Vocabulary, knob, parse_knob
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Tea(Config):
    """A config to test with."""

    minutes: float = knob(3.0, "How long it draws.", real(Interval(0, 10)), names=("time",))
    sugar: int | None = knob(None, "Lumps.", optional(integer(Interval(0))), shown=0)

    def check(self) -> None:
        if self.sugar == 7:
            raise ConfigError(f"sugar is {self.sugar} with minutes={self.minutes}")


NAMES = Vocabulary({"minutes": ("time",), "sugar": ()}, {"sweet": lambda value: {"sugar": 2 if value else 0}})


def test_a_new_config_is_checked_and_put_into_form():
    tea = Tea(minutes=4, sugar=2.0)  # pyright: ignore[reportArgumentType]
    assert (type(tea.minutes), type(tea.sugar)) == (float, int)
    with pytest.raises(ConfigError, match="minutes is 11; it must be a number, at least 0 and at most 10"):
        Tea(minutes=11)


def test_a_number_too_large_for_a_float_is_refused_like_any_other():
    with pytest.raises(ConfigError, match="minutes is "):
        Tea(minutes=10**400)


def test_rules_between_knobs_see_values_in_their_one_form():
    with pytest.raises(ConfigError, match=r"sugar is 7 with minutes=3\.0"):
        Tea(sugar=7, minutes=3)


def test_a_config_is_made_changed_and_read_back_by_any_name():
    tea = Tea.make(time="4").replace(sugar="2")
    assert tea == Tea(minutes=4.0, sugar=2)
    assert Tea.from_json(tea.to_json()) == tea
    with pytest.raises(ConfigError, match="no setting is called 'suger'; did you mean sugar"):
        Tea.make(suger=1)


def test_bad_text_is_refused_by_name():
    with pytest.raises(ConfigError, match="minutes is 'long'"):
        parse_knob(Tea, "minutes", "long")


def test_names_and_meanings_are_translated_and_clashes_named():
    assert NAMES.translate({"time": 1.0, "sweet": True}) == {"minutes": 1.0, "sugar": 2}
    with pytest.raises(ConfigError, match="sweet and sugar both set sugar"):
        NAMES.translate({"sweet": True, "sugar": 1})


def test_a_description_shows_the_default_in_effect():
    assert Tea.describe() == [
        {
            "name": "minutes",
            "type": "float",
            "default": 3.0,
            "legal": "a number, at least 0 and at most 10",
            "help": "How long it draws.",
            "aliases": ["time"],
        },
        {
            "name": "sugar",
            "type": "int | none",
            "default": 0,
            "legal": "a whole number, at least 0; or none",
            "help": "Lumps.",
            "aliases": [],
        },
    ]


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
