"""The five mutations by name and number, and the three of them that add text: a fallback, explanations, constraints."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from surefoot.data.shipped_yaml import read_shipped
from surefoot.decide.prompts import restructure
from surefoot.decide.prompts.classify import BY_CATEGORY, Category, classify
from surefoot.decide.prompts.text import ended, leading_verb, sentences, without_politeness
from surefoot.decide.prompts.variation import Impact, PromptVariation, variation
from surefoot.errors import ConfigError

# Constants and patterns are copied to the TypeScript client by its scripts/tables.py.
_CONDITION = re.compile(r"\b(?:if|when|unless|should|must)\b", re.IGNORECASE)
_HAS_FALLBACK = re.compile(
    r"\btry to\b|\bif (?:you|this|that|it|any)\b[^.]{0,60}\b(?:can't|cannot|can not|not possible|unable|difficult|isn't)",
    re.IGNORECASE,
)
# By the kind of verb that the prompt starts with.
_FALLBACKS = {
    "fix": ("fix-with-fallback", "If it cannot be fixed outright, suggest solutions or workarounds."),
    "create": (
        "create-with-alternatives",
        "If part of it is not possible, suggest alternatives or explain the challenge.",
    ),
    "analyse": ("analyze-with-partial", "If something cannot be determined, say what can be and what is missing."),
}
_OTHER_FALLBACK = ("general-with-explanation", "If that cannot be done, explain why and suggest the next steps.")


def add_fallback(prompt: str) -> PromptVariation:
    """Return the prompt as an attempt, with an instruction for failure that fits what it asks for."""
    verb, parts = leading_verb(prompt), sentences(prompt)
    if verb is not None:
        kind, fallback = _FALLBACKS.get(verb[1], _OTHER_FALLBACK)
        request = without_politeness(prompt)
        text = f"{ended(f'Try to {request[:1].lower()}{request[1:]}')} {fallback}"
    elif len(parts) > 1 and _CONDITION.search(prompt):
        kind = "conditional-breakdown"
        first, others = ended(parts[0]), ended(" ".join(parts[1:]))
        text = f"Try to do this: {first} {others} If a condition cannot be met, say which and go on without it."
    else:
        kind = "general-wrapper"
        text = f"Try to do the following: {ended(prompt.strip())} If you run into difficulties, say so and give what you have."
    return variation(
        prompt,
        text,
        "try-catch-style",
        "asks for an attempt and says what to do where it fails",
        Impact(cost="increase", reliability="increase"),
        transformationType=kind,
        lengthIncrease=len(text) - len(prompt),
    )


_EXPANSION = read_shipped("surefoot.decide.prompts", "expansion.yaml")
TERMS: dict[str, str] = _EXPANSION["terms"]
# Every definition costs tokens in each later call of the model.
MOST_TERMS = 3
_SECTIONS = ("Technical Context:", "Detailed Steps:", "Example:", "Success Criteria:")
_HAS_EXAMPLE = re.compile(r"\b(?:for example|for instance|e\.g\.|example:)", re.IGNORECASE)


def expand(prompt: str) -> PromptVariation:
    """Return the prompt with the sections it lacks: terms, steps, an example, success criteria."""

    def first(table: str) -> Any:
        """Return the entry of a shipped table whose pattern matches first, or None."""
        return next((entry for pattern, entry in _EXPANSION[table].items() if re.search(pattern, prompt, re.I)), None)

    added: list[tuple[str, list[str]]] = []
    known = [term for term in TERMS if re.search(rf"(?<!\w){re.escape(term)}(?!\w)", prompt, re.IGNORECASE)]
    if known:
        added.append(("Technical Context:", [f"{term}: {TERMS[term]}" for term in known[:MOST_TERMS]]))
    if steps := first("steps"):
        added.append(("Detailed Steps:", [f"{i}. {step}" for i, step in enumerate(steps, 1)]))
    if not _HAS_EXAMPLE.search(prompt) and (example := first("examples")):
        added.append(("Example:", [example]))
    criteria = ["everything asked for is answered", "nothing is made up", *(first("criteria") or ())]
    added.append(("Success Criteria:", [f"- {text}" for text in criteria[:4]]))
    return variation(
        prompt,
        prompt.rstrip() + "".join(f"\n\n{title}\n" + "\n".join(lines) for title, lines in added),
        "expansion",
        "adds " + ", ".join(title[:-1].lower() for title, _ in added),
        Impact(quality="increase", cost="increase", latency="increase", reliability="increase"),
        sections=[title[:-1] for title, _ in added],
    )


# Two per mutation and four in all: the policy can choose the mutation twice. More would bury the request.
ADDED_CONSTRAINTS = 2
MOST_CONSTRAINTS = 4
CONSTRAINTS = {category: tuple[str, ...](entry["constraints"]) for category, entry in BY_CATEGORY.items()}
"""Constraints by category; each asks for something that the category's metrics measure."""
_CONSTRAINTS_TITLE = "Constraints:"


def unused_constraints(prompt: str, category: Category) -> list[str]:
    """Return the constraints of a category that the prompt does not contain."""
    return [text for text in CONSTRAINTS[category] if text not in prompt]


def can_constrain(prompt: str) -> bool:
    """Return True if two more constraints fit below the maximum."""
    present = sum(text in prompt for texts in CONSTRAINTS.values() for text in texts)
    unused = unused_constraints(prompt, classify(prompt).category)
    return present + ADDED_CONSTRAINTS <= MOST_CONSTRAINTS and len(unused) >= ADDED_CONSTRAINTS


def add_constraints(prompt: str, category: Category, seed: int) -> PromptVariation:
    """Return the prompt with two more constraints, sampled by `seed` and the text."""
    chosen = random.Random(f"{seed}:{prompt}").sample(unused_constraints(prompt, category), ADDED_CONSTRAINTS)
    lines = "\n".join(f"- {text}" for text in chosen)
    # If the prompt already ends with a list of constraints, continue that list.
    listed = re.search(rf"{_CONSTRAINTS_TITLE}\n(?:- .*\n?)+\Z", prompt.rstrip())
    return variation(
        prompt,
        f"{prompt.rstrip()}\n{lines}" if listed else f"{prompt.rstrip()}\n\n{_CONSTRAINTS_TITLE}\n{lines}",
        "constraint-addition",
        f"adds {ADDED_CONSTRAINTS} constraints: {'; '.join(chosen)}",
        Impact(quality="increase", cost="increase", reliability="increase"),
        constraints=chosen,
        category=category,
    )


# A mutation is not offered if it would change nothing or repeat itself.
_POSSIBLE: dict[str, Callable[[str], bool]] = {
    "try-catch-style": lambda prompt: _HAS_FALLBACK.search(prompt) is None,
    "context-reduction": restructure.can_reduce,
    "expansion": lambda prompt: not any(section in prompt for section in _SECTIONS),
    "constraint-addition": can_constrain,
    "task-decomposition": restructure.can_decompose,
}
_APPLY: dict[str, Callable[[str], PromptVariation]] = {
    "try-catch-style": add_fallback,
    "context-reduction": restructure.reduce,
    "expansion": expand,
    "task-decomposition": restructure.decompose,
}
MUTATIONS = tuple(_POSSIBLE)
"""In the order of their numbers on the wire."""
STOP = "stop"
ACTIONS = (*MUTATIONS, STOP)
"""Actions of the policy: the mutations, then stop."""


def mutate(prompt: str, mutation: str | int, *, category: Category | None = None, seed: int = 0) -> PromptVariation:
    """Return the prompt after a mutation. The same prompt, mutation and seed give the same text.

    Args:
        prompt: Any text.
        mutation: Name or number in `MUTATIONS`.
        category: Category whose constraints are added; default: the prompt's.
        seed: Selects the constraints.
    """
    name = MUTATIONS[mutation] if isinstance(mutation, int) and 0 <= mutation < len(MUTATIONS) else mutation
    if name == "constraint-addition":
        return add_constraints(prompt, category or classify(prompt).category, seed)
    if isinstance(name, str) and name in _APPLY:
        return _APPLY[name](prompt)
    raise ConfigError(f"unknown mutation {mutation!r}; use one of {', '.join(MUTATIONS)} (0 to {len(MUTATIONS) - 1})")


def allowed(prompt: str) -> np.ndarray:
    """Return the action mask over `ACTIONS`, [6] bool."""
    return np.array([*(possible(prompt) for possible in _POSSIBLE.values()), True])
