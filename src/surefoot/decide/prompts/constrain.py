"""constraint-addition: two requirements of the prompt's own kind that it does not have yet."""

from __future__ import annotations

import random
import re

from surefoot.decide.prompts.classify import BY_CATEGORY, Category, classify
from surefoot.decide.prompts.variation import Impact, PromptVariation, lengths

NAME = "constraint-addition"
ADDED = 2
MOST = 4
"""Constraints that a prompt may be given in all."""
LIBRARY = {category: tuple[str, ...](entry["constraints"]) for category, entry in BY_CATEGORY.items()}
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
