"""Each mutation does what its name says, to real text, and the same every time."""

from __future__ import annotations

import pytest

from surefoot.decide.prompts.mutations import ACTIONS, MUTATIONS, allowed, mutate
from surefoot.errors import ConfigError

from .mutations_cases import CODE

LONG = (
    "Hello there! I would like you to write an essay about bees. As you know, bees are really important. "
    "In other words, without bees there is no honey. The essay must have 300 words."
)


def test_an_imperative_becomes_an_attempt_with_a_way_out():
    made = mutate(CODE, "try-catch-style")
    assert made.text.startswith("Try to write a Python function")
    assert "suggest alternatives" in made.text
    assert made.metadata["transformationType"] == "create-with-alternatives"
    assert made.metadata["lengthIncrease"] == len(made.text) - len(CODE)
    assert made.expected_impact.reliability == "increase"


@pytest.mark.parametrize(
    ("prompt", "kind"),
    [
        ("Fix this bug in the parser.", "fix-with-fallback"),
        ("Please analyze these numbers.", "analyze-with-partial"),
        ("Explain gravity.", "general-with-explanation"),
        ("The report is late. If it arrives, read it.", "conditional-breakdown"),
        ("What is a monad?", "general-wrapper"),
    ],
)
def test_the_way_out_fits_what_is_asked(prompt: str, kind: str):
    assert mutate(prompt, 0).metadata["transformationType"] == kind


def test_reduction_drops_politeness_and_repetition_and_keeps_what_binds():
    made = mutate(LONG, "context-reduction")
    assert len(made.text) < 0.7 * len(LONG)
    assert "300 words" in made.text
    assert "In other words" not in made.text
    assert made.metadata["targetReductionAchieved"]


def test_expansion_explains_terms_and_adds_what_is_missing():
    made = mutate("Implement a REST API with JWT.", "expansion")
    for title in ("Technical Context:", "Detailed Steps:", "Success Criteria:"):
        assert title in made.text
    assert "JWT: a signed token" in made.text


def test_a_second_helping_of_constraints_repeats_none():
    twice = mutate(mutate(CODE, 3).text, 3)
    lines = [line for line in twice.text.splitlines() if line.startswith("- ")]
    assert len(lines) == len(set(lines)) == 4
    assert not allowed(twice.text)[MUTATIONS.index("constraint-addition")]


def test_decomposition_gives_steps_a_prompt_for_each_and_one_that_joins_them():
    prompt = "Read the sales table. Then compute the monthly totals. Finally draw a chart of them."
    made = mutate(prompt, "task-decomposition")
    assert made.text.count("\n") == 4
    assert made.metadata["subtasks"] == [
        "Read the sales table.",
        "Compute the monthly totals.",
        "Draw a chart of them.",
    ]
    assert "3. Draw a chart" in made.metadata["orchestrator"]


@pytest.mark.parametrize(
    ("prompt", "mutation"),
    [
        ("Add numbers.", "task-decomposition"),
        ("Add numbers.", "context-reduction"),
        (mutate(CODE, 0).text, "try-catch-style"),
        (mutate(CODE, 2).text, "expansion"),
    ],
)
def test_what_would_do_nothing_or_the_same_again_is_not_offered(prompt: str, mutation: str):
    assert not allowed(prompt)[ACTIONS.index(mutation)]
    assert allowed(prompt)[ACTIONS.index("stop")]


@pytest.mark.parametrize("mutation", MUTATIONS)
@pytest.mark.parametrize("prompt", [CODE, LONG, "Hi", "اكتب قصة قصيرة عن البحر", "{content}\nAnswer:", "a" * 5000])
def test_every_mutation_takes_any_text(mutation: str, prompt: str):
    made = mutate(prompt, mutation)
    assert made.text.strip()
    assert made.to_json()["mutationType"] == mutation


def test_an_unknown_mutation_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match="there is no mutation 'shout'; there are try-catch-style"):
        mutate(CODE, "shout")
