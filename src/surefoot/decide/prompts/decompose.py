"""task-decomposition: the sub-tasks of a prompt as numbered steps, or each as a prompt of its own with one that joins them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

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


_SECTION = re.compile(r"^(?:Technical Context|Detailed Steps|Example|Success Criteria|Constraints):", re.MULTILINE)
"""What other mutations put below a prompt: no task is there."""


class PromptParts(NamedTuple):
    """A prompt taken apart; nothing of it is lost."""

    intro: str
    """What leads to a list of tasks."""
    tasks: tuple[str, ...]
    """Fewer than two where the prompt is a simple one."""
    rest: str
    """What stands below the tasks."""


@lru_cache(maxsize=8192)
def parts(prompt: str) -> PromptParts:
    """What the prompt asks for, one by one, and what stands around it."""
    found = _SECTION.search(prompt)
    request, rest = (prompt, "") if found is None else (prompt[: found.start()], prompt[found.start() :].strip())
    lines = request.strip().splitlines()
    listed = [place for place, line in enumerate(lines) if list_items(line)]
    if len(listed) >= 2:
        intro = "\n".join(lines[: listed[0]]).strip()
        after = [line for line in lines[listed[0] :] if not list_items(line)]
        below = "\n".join(after).strip()
        tasks = tuple(capital(item) for item in list_items(request))
        return PromptParts(intro, tasks, "\n\n".join(x for x in (below, rest) if x))
    for pattern in (_NEXT, _AND, _WITH):
        pieces = [piece.strip(" .\n") for piece in pattern.split(request.strip())]
        if pattern is _WITH and len(pieces) == 2 and len(pieces[1]) > SHORTEST:
            return PromptParts("", (capital(pieces[0]), f"Implement {pieces[1]}"), rest)
        if pattern is not _WITH and 2 <= len(pieces) <= MOST and all(len(piece) > SHORTEST for piece in pieces):
            return PromptParts("", tuple(capital(piece) for piece in pieces), rest)
    return PromptParts("", (), rest)


def possible(prompt: str) -> bool:
    """Only where there is more than one task, and once."""
    return _DONE not in prompt and len(parts(prompt).tasks) >= 2


def apply(prompt: str) -> PromptVariation:
    """The tasks as steps of one prompt. `metadata` has each as a prompt of its own, and the one that joins the answers."""
    intro, tasks, rest = parts(prompt)
    steps = "\n".join(f"{i}. {ended(task)}" for i, task in enumerate(tasks, 1))
    middle = f"{_DONE}\n{steps}\nFinish each step before the next, and join the results into one answer."
    text = "\n\n".join(part for part in (intro, middle, rest) if part)
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
