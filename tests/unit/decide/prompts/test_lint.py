"""Tests of `surefoot.decide.prompts.lint`."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import yaml

from surefoot.decide.prompts.lint import TERMS, asks, content, lint, readable
from surefoot.decide.prompts.text import ended

PAIRS = yaml.safe_load((Path(__file__).parent / "lint_pairs.yaml").read_text())
EVERY = [(part, i) for part in PAIRS for i in range(len(PAIRS[part]))]
# Lines that are pasted under prompts of every kind.
BOILERPLATE = [
    "Let's work this out in a step by step way to be sure we have the right answer.",
    "You are an expert in this field.",
    "Answer as truthfully as possible, and if you're unsure of the answer, say so.",
    "Provide a comprehensive response.",
    "Respond in a natural, human-like manner.",
    "Be concise, and do not repeat yourself.",
    "Before answering, reflect on your reasoning.",
    "Write at least 3 paragraphs and use headings.",
    "Output format: JSON with 2 fields.",
    "Constraints:\n- use type annotations throughout\n- name a source where you can\n- keep it below 150 words",
    "Success Criteria:\n1. everything asked for is answered\n2. nothing is made up",
    "Please make sure that your answer is unbiased and does not rely on stereotypes.",
]


@pytest.mark.parametrize(("part", "i"), EVERY)
def test_the_better_prompt_of_a_pair_scores_higher(part: str, i: int):
    pair = PAIRS[part][i]
    assert lint(pair["better"]).score > lint(pair["worse"]).score


@pytest.mark.parametrize("addition", BOILERPLATE)
def test_lines_that_fit_under_every_prompt_never_raise_the_score(addition: str):
    prompts = [pair[side] for pairs in PAIRS.values() for pair in pairs for side in ("better", "worse")]
    for prompt in prompts:
        assert lint(f"{prompt}\n\n{addition}").score <= lint(prompt).score + 1e-9, prompt
        # Not behind a list: its last item would then be about something else.
        if "\n" not in prompt:
            assert lint(f"{ended(prompt)} {addition}").score <= lint(prompt).score + 1e-9, prompt


def test_the_words_of_a_prompt_in_random_order_score_less_than_half():
    rng, prompts = random.Random(0), [pair["better"] for pairs in PAIRS.values() for pair in pairs]
    shuffled = []
    for prompt in prompts:
        words = prompt.split()
        rng.shuffle(words)
        shuffled.append(lint(" ".join(words)).score)
    assert sum(shuffled) < 0.5 * sum(lint(prompt).score for prompt in prompts)


def test_a_score_is_the_sum_of_its_terms_and_names_what_is_missing():
    linted = lint("Write something nice.")
    assert linted.score == pytest.approx(sum(linted.breakdown.values()))
    assert tuple(linted.breakdown) == TERMS
    assert "vague: nice, something" in linted.reasons
    assert "no exact detail" in linted.explanation
    assert lint("").reasons == ("it is empty",)


@pytest.mark.parametrize(
    ("sentence", "is_request"),
    [
        ("Could you please list the planets?", True),
        ("Using these numbers, compute the mean.", True),
        ("The sky was blue.", False),
        ("I need a name for my boat", True),
        ("how do magnets work", True),
    ],
)
def test_requests_are_told_from_statements(sentence: str, is_request: bool):
    assert asks(sentence) == is_request


def test_words_of_instructions_are_no_content():
    assert content("Give a detailed and accurate answer about magnets") == {"magnet"}
    assert content("Handle edge cases, step by step") == set()


def test_words_without_order_are_found():
    assert readable("the of and is a to bridge over river by from") < 1.0
    assert readable("Describe the bridge over the river in two sentences.") == 1.0
