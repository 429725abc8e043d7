"""Tests of `surefoot.decide.prompts.mutations`."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.decide.prompts.mutations import ACTIONS, CONSTRAINTS, MUTATIONS, WIRE_MUTATIONS, allowed, mutate
from surefoot.errors import ConfigError

from .content_cases import lost
from .mutations_cases import CODE, LONG

CUT = MUTATIONS.index("context-reduction")
PIECES = st.sampled_from(
    [
        "Write a story about Ilse, 4 years old.",
        "Ryan tells the truth.",
        "Does Alejandro tell the truth?",
        'Classify this as "positive" or "negative":',
        "Then compute the totals; finally draw a chart.",
        "- wash the car\n- feed the cat",
        "Options: card arrival, lost or stolen card, top up",
        "(A) red (B) blue (C) green",
        "```python\nx = just(1)\n```",
        "```",
        "Use `really()` and see https://example.com/a?b=1.",
        "Please just really explain what a REST API is.",
        "Translate into French:",
        "Answer:",
        "Constraints:\n- use short paragraphs",
        "You are a teacher.",
        "Reply with one word.",
        "fix my resume",
        "{content}",
    ]
)
PROMPTS = st.one_of(
    st.text(max_size=120),
    st.lists(PIECES, min_size=1, max_size=6).flatmap(
        lambda pieces: st.lists(st.sampled_from([" ", "\n", "\n\n"]), min_size=len(pieces), max_size=len(pieces)).map(
            lambda gaps: "".join(a + b for a, b in zip(pieces, gaps, strict=True))
        )
    ),
)


@given(PROMPTS, st.lists(st.integers(0, len(MUTATIONS) - 1), min_size=1, max_size=4))
@settings(max_examples=3000, deadline=None)
def test_no_sequence_of_mutations_loses_content(prompt: str, sequence: list[int]):
    text = prompt
    for mutation in sequence:
        if allowed(text)[mutation]:
            text = mutate(text, mutation).text
    assert not lost(prompt, text)


def test_the_premises_of_a_puzzle_stay():
    puzzle = (
        "Question: Ryan tells the truth. Sal says Ryan tells the truth. Leda says Sal tells the truth. "
        "Rashida says Leda tells the truth. Does Rashida tell the truth?"
    )
    for mutation in possible_mutations(puzzle):
        assert puzzle in mutate(puzzle, mutation).text


def possible_mutations(prompt: str) -> list[int]:
    return [i for i, possible in enumerate(allowed(prompt)[:-1]) if possible]


def test_words_are_removed_only_if_cutting_is_allowed():
    assert not allowed(LONG)[CUT]
    assert allowed("Please just really explain tea.", allow_cut=True)[CUT]
    assert mutate("Please just really explain tea.", CUT).text == "Explain tea."
    assert '"just do it"' in mutate('Please just really explain "just do it" to me.', CUT).text


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("fix my resume", ("150 words", "first sentence", "source")),
        ("Write a function that sorts a list of users by age.", ("[3, 1, 2]", "source")),
        ("Is 17 a prime number? Answer in one word.", ("Constraints", "complete answer")),
    ],
)
def test_nothing_is_added_that_does_not_fit_the_task(prompt: str, words: tuple[str, ...]):
    for mutation in possible_mutations(prompt):
        text = mutate(prompt, mutation).text
        assert not any(word in text for word in words), text


@pytest.mark.parametrize(
    ("prompt", "kind"),
    [
        ("Fix this bug in the parser.", "fix-with-fallback"),
        ("Please analyze these numbers.", "analyze-with-partial"),
        ("Explain gravity.", "general-with-explanation"),
        ("The report is late. If it arrives, read it.", "conditional-breakdown"),
        ("Write a poem.", "create-with-alternatives"),
    ],
)
def test_the_fallback_fits_the_request(prompt: str, kind: str):
    result = mutate(prompt, "try-catch-style")
    assert result.metadata["transformationType"] == kind
    assert result.text.startswith(prompt)


def test_adding_constraints_twice_repeats_none():
    twice = mutate(mutate(CODE, "constraint-addition").text, "constraint-addition")
    lines = [line for line in twice.text.splitlines() if line.startswith("- ")]
    assert len(lines) == len(set(lines)) > 2
    assert {line[2:] for line in lines} <= {each.text for each in CONSTRAINTS["code"]}


def test_a_line_that_waits_for_the_answer_stays_last():
    prompt = "Respond True if it holds, False otherwise.\nQuestion: {content}\nAnswer:"
    text = mutate(prompt, "answer-form").text
    assert text.endswith("\n\nThe answer is one of: True, False.\n\nAnswer:")


@pytest.mark.parametrize(
    ("prompt", "mutation"),
    [
        ("Add numbers.", "task-decomposition"),
        ("Question?\nAnswer:", "answer-cue"),
        (mutate(CODE, "try-catch-style").text, "try-catch-style"),
        (mutate(CODE, "expansion").text, "expansion"),
        ("```python\nx = 1", "answer-cue"),
    ],
)
def test_a_mutation_without_effect_or_applied_before_is_not_allowed(prompt: str, mutation: str):
    assert not allowed(prompt)[ACTIONS.index(mutation)]
    assert allowed(prompt)[ACTIONS.index("stop")]


@pytest.mark.parametrize("mutation", MUTATIONS)
@pytest.mark.parametrize("prompt", [CODE, LONG, "Hi", "اكتب قصة قصيرة عن البحر", "{content}\nAnswer:", "a" * 5000])
def test_every_allowed_mutation_changes_the_text(mutation: str, prompt: str):
    if allowed(prompt, allow_cut=True)[MUTATIONS.index(mutation)]:
        result = mutate(prompt, mutation)
        assert result.text != prompt
        assert result.to_json()["mutationType"] == mutation


def test_an_unknown_mutation_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match="unknown mutation 'shout'; use one of try-catch-style"):
        mutate(CODE, "shout")


def test_the_numbers_on_the_wire_stay():
    assert WIRE_MUTATIONS == (
        "try-catch-style",
        "context-reduction",
        "expansion",
        "constraint-addition",
        "task-decomposition",
    )


def test_a_line_that_was_added_is_not_labelled_as_the_input():
    for first in ("answer-form", "step-by-step", "try-catch-style", "constraint-addition"):
        for prompt in ("What is 27 + 18 - 1?", "Write a report about bees in Malta."):
            if allowed(prompt)[MUTATIONS.index(first)]:
                added = mutate(prompt, first).text
                assert not allowed(added)[MUTATIONS.index("labelled-parts")], added
    given = "Translate this into French.\n\nThe train is late."
    assert allowed(given)[MUTATIONS.index("labelled-parts")]
