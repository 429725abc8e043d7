"""Tests of `surefoot.decide.prompts.restructure`."""

from __future__ import annotations

from surefoot.decide.prompts.mutations import mutate
from surefoot.decide.prompts.restructure import can_decompose, can_reduce, parts, reduced

from .mutations_cases import LONG


def test_reduction_drops_politeness_and_repetition_and_keeps_requirements():
    result = mutate(LONG, "context-reduction")
    assert len(result.text) < 0.7 * len(LONG)
    assert "300 words" in result.text
    assert "In other words" not in result.text
    assert result.metadata["targetReductionAchieved"]


def test_a_prompt_without_anything_to_drop_is_unchanged():
    prompt = "Write an essay about bees."
    assert reduced(prompt) == prompt
    assert not can_reduce(prompt)
    assert reduced("Please, really.") == "Please, really.", "shorter than any request would be"


def test_list_items_are_tasks():
    assert parts("Do this:\n- wash the car\n- feed the cat") == (
        "Do this:",
        ("Wash the car", "Feed the cat"),
        "",
    )


def test_decomposition_returns_steps_one_prompt_per_step_and_an_orchestrator():
    prompt = "Read the sales table. Then compute the monthly totals. Finally draw a chart of them."
    result = mutate(prompt, "task-decomposition")
    assert result.text.count("\n") == 4
    assert result.metadata["subtasks"] == [
        "Read the sales table.",
        "Compute the monthly totals.",
        "Draw a chart of them.",
    ]
    assert "3. Draw a chart" in result.metadata["orchestrator"]


def test_a_decomposed_prompt_keeps_the_request_and_added_sections():
    prompt = "Write a poem about the sea."
    constrained = mutate(prompt, "constraint-addition").text
    assert not can_decompose(constrained)
    listed = "Plan my week:\n- wash the car\n- feed the cat\nBe brief."
    text = mutate(mutate(listed, "constraint-addition").text, "task-decomposition").text
    assert text.startswith("Plan my week:")
    assert "1. Wash the car." in text
    assert "Be brief." in text
    assert "Constraints:" in text
    assert "3." not in text.split("Constraints:")[0]
