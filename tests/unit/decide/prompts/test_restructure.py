"""Tests of `surefoot.decide.prompts.restructure`."""

from __future__ import annotations

from surefoot.decide.prompts.mutations import mutate
from surefoot.decide.prompts.restructure import can_reduce, reduced, tasks

from .content_cases import lost


def test_a_prompt_without_anything_to_drop_is_unchanged():
    prompt = "Write an essay about bees."
    assert reduced(prompt) == prompt
    assert not can_reduce(prompt)
    assert reduced("Please, really.") == "Please, really.", "shorter than any request would be"


def test_sentences_in_order_become_numbered_steps_with_all_their_words():
    prompt = "Write the sales table. Then compare the monthly totals. Finally draft a report of them."
    result = mutate(prompt, "task-decomposition")
    assert "\n3. Finally draft a report of them." in result.text
    assert not lost(prompt, result.text)
    assert len(result.metadata["subtasks"]) == 3
    assert "2. Then compare" in result.metadata["orchestrator"]


def test_premises_and_lists_of_things_are_not_tasks():
    assert tasks("Ryan tells the truth. Then Sal lies. Does Sal lie?") == ()
    assert tasks("Compare these:\n- Lisbon\n- Porto") == ()
    assert tasks("Do this:\n- check the car\n- add a cat") == ("check the car", "add a cat")


def test_the_task_is_repeated_below_the_text_it_is_about():
    prompt = "Translate this text into French.\n\nThe train is late."
    assert mutate(prompt, "restatement").text == f"{prompt}\n\nAgain, the task: Translate this text into French."
    assert mutate(prompt, "labelled-parts").text == (
        "Task: Translate this text into French.\n\nInput:\nThe train is late."
    )
