"""expansion: what the terms mean, which steps there are, what an answer looks like and when it is good."""

from __future__ import annotations

import re
from typing import Any

from surefoot.data.shipped_yaml import read_shipped
from surefoot.decide.prompts.variation import Impact, PromptVariation, lengths

NAME = "expansion"
_SHIPPED = read_shipped("surefoot.decide.prompts", "expansion.yaml")
TERMS: dict[str, str] = _SHIPPED["terms"]
MOST_TERMS = 3
_SECTIONS = ("Technical Context:", "Detailed Steps:", "Example:", "Success Criteria:")
_HAS_EXAMPLE = re.compile(r"\b(?:for example|for instance|e\.g\.|example:)", re.IGNORECASE)


def possible(prompt: str) -> bool:
    """Once: a prompt that was expanded has its sections."""
    return not any(section in prompt for section in _SECTIONS)


def _first(table: str, prompt: str) -> Any:
    """Return the entry of a shipped table whose pattern matches first, or None."""
    return next((entry for pattern, entry in _SHIPPED[table].items() if re.search(pattern, prompt, re.I)), None)


def apply(prompt: str) -> PromptVariation:
    """The prompt with whichever sections it lacks."""
    added: list[tuple[str, list[str]]] = []
    known = [term for term in TERMS if re.search(rf"(?<!\w){re.escape(term)}(?!\w)", prompt, re.IGNORECASE)]
    if known:
        added.append(("Technical Context:", [f"{term}: {TERMS[term]}" for term in known[:MOST_TERMS]]))
    if steps := _first("steps", prompt):
        added.append(("Detailed Steps:", [f"{i}. {step}" for i, step in enumerate(steps, 1)]))
    if not _HAS_EXAMPLE.search(prompt) and (example := _first("examples", prompt)):
        added.append(("Example:", [example]))
    criteria = ["everything asked for is answered", "nothing is made up", *(_first("criteria", prompt) or ())]
    added.append(("Success Criteria:", [f"- {text}" for text in criteria[:4]]))
    text = prompt.rstrip() + "".join(f"\n\n{title}\n" + "\n".join(lines) for title, lines in added)
    return PromptVariation(
        text=text,
        mutation_type=NAME,
        change_description="adds " + ", ".join(title[:-1].lower() for title, _ in added),
        expected_impact=Impact(quality="increase", cost="increase", latency="increase", reliability="increase"),
        metadata={**lengths(prompt, text), "sections": [title[:-1] for title, _ in added]},
    )
