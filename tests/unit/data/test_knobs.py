"""Values from text, intervals in words, and literals that run nothing."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from surefoot.data.kinds import Interval, integer, optional, real
from surefoot.data.knobs import Config, Vocabulary, knob, parse_knob
from surefoot.errors import ConfigError


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
