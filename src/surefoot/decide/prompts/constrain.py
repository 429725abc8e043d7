"""constraint-addition: two requirements of the prompt's own kind that it does not have yet."""

from __future__ import annotations

import random
import re

from surefoot.decide.prompts.classify import Category, classify
from surefoot.decide.prompts.variation import Impact, PromptVariation, lengths

NAME = "constraint-addition"
ADDED = 2
MOST = 4
"""Constraints that a prompt may be given in all."""
LIBRARY: dict[Category, tuple[str, ...]] = {
    "CODE_GENERATION": (
        "use type annotations throughout",
        "handle errors and name them in the message",
        "add unit tests that cover the edge cases",
        "keep each function to one task (SOLID)",
        "use async/await where something waits",
        "comment what is not obvious from the code",
        "reject input of the wrong type",
    ),
    "CODE_REVIEW": (
        "name security vulnerabilities first",
        "say what each problem costs in performance",
        "judge readability and naming",
        "give the corrected lines",
        "rank the problems by severity",
        "say what is missing from the tests",
    ),
    "CONTENT_WRITING": (
        "use headings and short paragraphs",
        "keep a consistent, professional tone",
        "write for readers who are new to the subject",
        "begin with the main point",
        "keep sentences below 25 words",
        "end with a summary",
        "avoid jargon",
    ),
    "MARKETING_COPY": (
        "end with one clear call to action",
        "name benefits, not features",
        "speak to one kind of customer",
        "keep it below 100 words",
        "give a reason to act now",
        "support the claim with a number or a quote",
        "use an active voice",
    ),
    "DATA_ANALYSIS": (
        "name the method and its assumptions",
        "give the three most important insights",
        "say which chart would show it",
        "report the uncertainty of each number",
        "say how missing values were treated",
        "end with a recommendation",
    ),
    "GENERAL_QA": (
        "answer in the first sentence",
        "say so where you are not certain",
        "keep it below 150 words",
        "name a source where you can",
        "give one practical example",
    ),
    "CREATIVE_WRITING": (
        "appeal to at least three senses",
        "give the narrator a voice of their own",
        "avoid worn-out phrases",
        "let one image return at the end",
        "show what people feel by what they do",
        "surprise the reader once",
    ),
}
"""By category. What a constraint asks for is what the category's metrics look for, among other things."""

_TITLE = "Constraints:"


def unused(prompt: str, category: Category) -> list[str]:
    """Those of the category that the prompt does not have."""
    return [text for text in LIBRARY[category] if text not in prompt]


def possible(prompt: str) -> bool:
    """Until it has its share of them."""
    given = sum(text in prompt for texts in LIBRARY.values() for text in texts)
    return given + ADDED <= MOST and len(unused(prompt, classify(prompt).category)) >= ADDED


def apply(prompt: str, category: Category, seed: int) -> PromptVariation:
    """The prompt with two constraints more; which ones follows from `seed` and the text."""
    chosen = random.Random(f"{seed}:{prompt}").sample(unused(prompt, category), ADDED)
    lines = "\n".join(f"- {text}" for text in chosen)
    # A second helping goes below the first.
    text = (
        f"{prompt.rstrip()}\n{lines}"
        if re.search(rf"{_TITLE}\n(?:- .*\n?)+\Z", prompt.rstrip())
        else f"{prompt.rstrip()}\n\n{_TITLE}\n{lines}"
    )
    return PromptVariation(
        text=text,
        mutation_type=NAME,
        change_description=f"adds {ADDED} constraints: {'; '.join(chosen)}",
        expected_impact=Impact(quality="increase", cost="increase", reliability="increase"),
        metadata={**lengths(prompt, text), "constraints": chosen, "category": category},
    )
