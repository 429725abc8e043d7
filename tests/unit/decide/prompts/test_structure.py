"""Tests of `surefoot.decide.prompts.structure`."""

from __future__ import annotations

import pytest

from surefoot.decide.prompts.structure import append, structure


@pytest.mark.parametrize(
    ("prompt", "options"),
    [
        ('Answer me with "equivalent" or "not_equivalent".', ("equivalent", "not_equivalent")),
        ("Respond Valid if the brackets match, Invalid otherwise.", ("Valid", "Invalid")),
        ("Options: top up, lost or stolen card, ATM", ("top up", "lost or stolen card", "ATM")),
        ("Functions:\n- add: adds\n- sub.two: subtracts\n\nRequest: x", ("add", "sub.two")),
        ("Which is it? (A) red (B) blue (C) green ", ("(A)", "(B)", "(C)")),
        ("Write a story about salt or pepper.", ()),
    ],
)
def test_the_options_of_a_prompt_are_found(prompt: str, options: tuple[str, ...]):
    assert structure(prompt).options == options


@pytest.mark.parametrize(
    ("prompt", "form"),
    [
        ("Does Alejandro tell the truth?", "yes-no"),
        ("Can you write a poem?", "text"),
        ("How many legs has a spider?", "short"),
        ("Why is the sky blue?", "open"),
    ],
)
def test_the_form_of_the_answer_follows_from_the_question(prompt: str, form: str):
    assert structure(prompt).form == form


def test_text_is_added_above_a_line_that_waits_for_the_answer():
    assert append("What is tea?\nAnswer:", "Be exact.") == "What is tea?\n\nBe exact.\n\nAnswer:"
    assert append("What is tea?", "Be exact.") == "What is tea?\n\nBe exact."
