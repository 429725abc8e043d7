"""Tests of `surefoot.decide.prompts.mutations`."""

from __future__ import annotations

import pytest

from surefoot.decide.prompts.mutations import ACTIONS, CONSTRAINTS, MUTATIONS, allowed, mutate
from surefoot.errors import ConfigError

from .mutations_cases import CODE, LONG


def test_an_imperative_becomes_an_attempt_with_a_fallback():
    result = mutate(CODE, "try-catch-style")
    assert result.text.startswith("Try to write a Python function")
    assert "suggest alternatives" in result.text
    assert result.metadata["transformationType"] == "create-with-alternatives"
    assert result.metadata["lengthIncrease"] == len(result.text) - len(CODE)
    assert result.expected_impact.reliability == "increase"


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
def test_the_fallback_fits_the_request(prompt: str, kind: str):
    assert mutate(prompt, 0).metadata["transformationType"] == kind


def test_expansion_explains_terms_and_adds_what_is_missing():
    result = mutate("Implement a REST API with JWT.", "expansion")
    for title in ("Technical Context:", "Detailed Steps:", "Success Criteria:"):
        assert title in result.text
    assert "JWT: a signed token" in result.text


def test_adding_constraints_twice_repeats_none():
    twice = mutate(mutate(CODE, 3).text, 3)
    lines = [line for line in twice.text.splitlines() if line.startswith("- ")]
    assert len(lines) == len(set(lines)) == 4
    assert not allowed(twice.text)[MUTATIONS.index("constraint-addition")]


@pytest.mark.parametrize(
    ("prompt", "mutation"),
    [
        ("Add numbers.", "task-decomposition"),
        ("Add numbers.", "context-reduction"),
        (mutate(CODE, 0).text, "try-catch-style"),
        (mutate(CODE, 2).text, "expansion"),
    ],
)
def test_a_mutation_without_effect_or_applied_before_is_not_allowed(prompt: str, mutation: str):
    assert not allowed(prompt)[ACTIONS.index(mutation)]
    assert allowed(prompt)[ACTIONS.index("stop")]


@pytest.mark.parametrize("mutation", MUTATIONS)
@pytest.mark.parametrize("prompt", [CODE, LONG, "Hi", "اكتب قصة قصيرة عن البحر", "{content}\nAnswer:", "a" * 5000])
def test_every_mutation_takes_any_text(mutation: str, prompt: str):
    result = mutate(prompt, mutation)
    assert result.text.strip()
    assert result.to_json()["mutationType"] == mutation


def test_an_unknown_mutation_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match="unknown mutation 'shout'; use one of try-catch-style"):
        mutate(CODE, "shout")


def test_constraints_are_those_of_the_category_and_follow_from_the_seed():
    one, again, other = (mutate(CODE, "constraint-addition", seed=seed) for seed in (1, 1, 2))
    assert one.text == again.text
    assert one.metadata["category"] == "CODE_GENERATION"
    assert set(one.metadata["constraints"]) <= set(CONSTRAINTS["CODE_GENERATION"])
    assert {mutate(CODE, 3, seed=seed).text for seed in range(8)} != {one.text} or other.text != one.text
