"""Repetition and refusals of texts whose shares are known by counting."""

from __future__ import annotations

import pytest

from surefoot.lm.rewards.fluency import Fluency, fluency, is_refusal, repeated_grams


def test_repeated_4grams_are_counted() -> None:
    assert repeated_grams([1, 2, 3, 4, 5]) == 0.0
    # abcdabcd has the 4-grams abcd bcda cdab dabc abcd: one of five occurred before.
    assert repeated_grams([1, 2, 3, 4, 1, 2, 3, 4]) == pytest.approx(0.2)
    assert repeated_grams([1, 2]) == 0.0


@pytest.mark.parametrize(
    ("text", "refuses"),
    [
        ("I'm sorry, but I can't help with that.", True),
        ("As an AI language model, I do not eat.", True),
        ("I am a virtual assistant.", True),
        ("I can help you with that.", False),
        ("A model of a ship stood on the shelf.", False),
        ("Sorry seems to be the hardest word.", False),
        ("As an artist, I paint.", False),
    ],
)
def test_refusals_and_self_descriptions_are_recognised(text: str, refuses: bool) -> None:
    assert is_refusal(text) is refuses


def test_each_limit_is_relative_to_the_base() -> None:
    base = fluency([[1, 2, 3, 4, 5]], ["Rain falls."], 2.0)
    worse = Fluency(nll=2.2, repetition=0.3, refusals=0.5)
    off = {"nll": None, "repetition": None, "refusals": None}
    assert worse.beyond(base, **off) == ""
    assert "nll_limit" in worse.beyond(base, **{**off, "nll": 0.05})
    assert worse.beyond(base, **{**off, "nll": 0.15}) == ""
    assert "repetition_limit" in worse.beyond(base, **{**off, "repetition": 0.2})
    assert "refusal_limit" in worse.beyond(base, **{**off, "refusals": 0.2})


def test_one_phrase_in_every_response_is_a_loss_of_diversity() -> None:
    base = fluency([[1, 2, 3, 4], [5, 6, 7, 8]], ["Rain falls.", "Snow melts."], 2.0)
    alike = fluency([[1, 2, 3, 4], [1, 2, 3, 4]], ["Rain falls.", "Rain falls."], 2.0)
    assert (base.diversity, alike.diversity) == (1.0, 0.5)
    assert alike.repetition == 0.0
    limits = {"nll": None, "repetition": 0.1, "refusals": None}
    assert alike.beyond(base, **limits) == ""
    assert "diversity_limit" in alike.beyond(base, **limits, diversity=0.1)
