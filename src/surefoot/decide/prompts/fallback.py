"""try-catch-style: ask for the attempt, and say what to do where it cannot succeed."""

from __future__ import annotations

import re

from surefoot.decide.prompts.text import ended, leading_verb, sentences, without_politeness
from surefoot.decide.prompts.variation import Impact, PromptVariation, lengths

NAME = "try-catch-style"
_CONDITION = re.compile(r"\b(?:if|when|unless|should|must)\b", re.IGNORECASE)
_HAS_ONE = re.compile(
    r"\btry to\b|\bif (?:you|this|that|it|any)\b[^.]{0,60}\b(?:can't|cannot|can not|not possible|unable|difficult|isn't)",
    re.IGNORECASE,
)
_AFTER = {
    "fix": ("fix-with-fallback", "If it cannot be fixed outright, suggest solutions or workarounds."),
    "create": (
        "create-with-alternatives",
        "If part of it is not possible, suggest alternatives or explain the challenge.",
    ),
    "analyse": ("analyze-with-partial", "If something cannot be determined, say what can be and what is missing."),
}
_OTHERWISE = ("general-with-explanation", "If that cannot be done, explain why and suggest the next steps.")


def possible(prompt: str) -> bool:
    """Not where a way out is offered already."""
    return _HAS_ONE.search(prompt) is None


def apply(prompt: str) -> PromptVariation:
    """The prompt as an attempt with a way out, chosen by what it asks for."""
    verb, parts = leading_verb(prompt), sentences(prompt)
    if verb is not None:
        kind, after = _AFTER.get(verb[1], _OTHERWISE)
        asked = without_politeness(prompt)
        text = f"{ended(f'Try to {asked[:1].lower()}{asked[1:]}')} {after}"
    elif len(parts) > 1 and _CONDITION.search(prompt):
        kind = "conditional-breakdown"
        first, rest = parts[0], " ".join(parts[1:])
        text = f"Try to do this: {ended(first)} {ended(rest)} If a condition cannot be met, say which and go on without it."
    else:
        kind = "general-wrapper"
        text = f"Try to do the following: {ended(prompt.strip())} If you run into difficulties, say so and give what you have."
    return PromptVariation(
        text=text,
        mutation_type=NAME,
        change_description="asks for an attempt and says what to do where it fails",
        expected_impact=Impact(cost="increase", reliability="increase"),
        metadata={"transformationType": kind, **lengths(prompt, text), "lengthIncrease": len(text) - len(prompt)},
    )
