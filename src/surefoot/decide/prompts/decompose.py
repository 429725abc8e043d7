"""task-decomposition: the sub-tasks of a prompt as numbered steps, or each as a prompt of its own with one that joins them."""

from __future__ import annotations

import re
from functools import lru_cache

from surefoot.decide.prompts.text import capital, ended, list_items
from surefoot.decide.prompts.variation import Impact, PromptVariation, lengths

NAME = "task-decomposition"
SHORTEST = 15
"""Characters below which half a sentence is no task."""
MOST = 8
_NEXT = re.compile(r"(?:\.|;)\s+(?:then|finally|next|also|after that|afterwards)[,\s]+|;\s+", re.IGNORECASE)
_WITH = re.compile(r"\s+with\s+", re.IGNORECASE)
_AND = re.compile(r",?\s+and\s+(?:then\s+)?", re.IGNORECASE)
_DONE = "Work through these steps in order:"


@lru_cache(maxsize=8192)
def subtasks(prompt: str) -> tuple[str, ...]:
    """What the prompt asks for, one by one; fewer than two where it is a simple one."""
    items = list_items(prompt)
    if len(items) >= 2:
        return tuple(capital(item) for item in items[:MOST])
    for pattern in (_NEXT, _AND, _WITH):
        parts = [part.strip(" .\n") for part in pattern.split(prompt.strip())]
        if pattern is _WITH and len(parts) == 2 and len(parts[1]) > SHORTEST:
            return capital(parts[0]), f"Implement {parts[1]}"
        if pattern is not _WITH and 2 <= len(parts) <= MOST and all(len(part) > SHORTEST for part in parts):
            return tuple(capital(part) for part in parts)
    return ()


def possible(prompt: str) -> bool:
    """Only where there is more than one task, and once."""
    return _DONE not in prompt and len(subtasks(prompt)) >= 2


def apply(prompt: str) -> PromptVariation:
    """The tasks as steps of one prompt. `metadata` has each as a prompt of its own, and the one that joins the answers."""
    tasks = subtasks(prompt)
    steps = "\n".join(f"{i}. {ended(task)}" for i, task in enumerate(tasks, 1))
    text = f"{_DONE}\n{steps}\nFinish each step before the next, and join the results into one answer."
    joined = "Join these parts into one whole:\n" + "\n".join(f"{i}. {task}" for i, task in enumerate(tasks, 1))
    orchestrator = f"{joined}\nSee that what one part gives is what the next one takes."
    return PromptVariation(
        text=text if tasks else prompt,
        mutation_type=NAME,
        change_description=f"splits the prompt into {len(tasks)} steps" if tasks else "is simple already",
        expected_impact=Impact(quality="increase", cost="increase", latency="increase", reliability="increase"),
        metadata={
            **lengths(prompt, text),
            "subtasks": [ended(task) for task in tasks],
            "orchestrator": orchestrator if tasks else "",
        },
    )
