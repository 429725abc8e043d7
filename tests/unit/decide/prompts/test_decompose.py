"""Tests of `surefoot.decide.prompts.decompose`."""

from __future__ import annotations

from surefoot.decide.prompts import decompose
from surefoot.decide.prompts.mutations import mutate


def test_lists_are_taken_as_they_stand():
    assert decompose.parts("Do this:\n- wash the car\n- feed the cat") == (
        "Do this:",
        ("Wash the car", "Feed the cat"),
        "",
    )


def test_a_decomposed_prompt_keeps_what_it_asked_for_and_what_others_added():
    asked = "Write a poem about the sea."
    constrained = mutate(asked, "constraint-addition").text
    assert not decompose.possible(constrained)
    listed = "Plan my week:\n- wash the car\n- feed the cat\nBe brief."
    text = mutate(mutate(listed, "constraint-addition").text, "task-decomposition").text
    assert text.startswith("Plan my week:")
    assert "1. Wash the car." in text
    assert "Be brief." in text
    assert "Constraints:" in text
    assert "3." not in text.split("Constraints:")[0]
