"""Mutations that rearrange a prompt: context-reduction shortens it, task-decomposition splits it into steps."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from surefoot.decide.prompts.text import VERBS, capital, ended, list_items, sentences
from surefoot.decide.prompts.variation import Impact, PromptVariation, variation

# Constants and patterns are copied to the TypeScript client by its scripts/tables.py.
# Below 10 characters nothing is left that could be a request.
SHORTEST_PROMPT = 10
# A smaller saving does not justify a change of wording.
SMALLEST_SAVING = 0.05
_REPETITION = re.compile(
    r"^(?:in other words|that is to say|to put it simply|basically|essentially|in simple terms|to clarify)\b",
    re.IGNORECASE,
)
_FILLERS = re.compile(
    r"\b(?:as you (?:may )?know|it is (?:important|worth) (?:to note|noting) that|obviously|clearly|of course|needless to say|"
    r"to be honest|just|really|very|actually|simply|kind of|sort of|in order)\b,?\s*",
    re.IGNORECASE,
)
_REQUESTS = re.compile(
    r"^(?:(?:hi|hello|hey)\b[^.!?]{0,40}[.!,]\s*)?(?:i would like you to|i'd like you to|i want you to|i need you to|"
    r"(?:could|can|would) you(?: please)?|please|kindly)\s+",
    re.IGNORECASE,
)
_LONG_EXAMPLE = re.compile(
    r"\b(?:for example|for instance|e\.g\.|such as)[:,]?\s+[^.!?\n]{60,}(?=[.!?\n]|$)", re.IGNORECASE
)
_ASKS = re.compile(r"\b(?:" + "|".join(v for verbs in VERBS.values() for v in verbs) + r")\b", re.IGNORECASE)
_BINDS = re.compile(
    r"\b(?:must|should|only|exactly|at least|at most|less than|more than|without|do not|don't|avoid|never|always|include|"
    r"format|answer|words?|sentences?|paragraphs?)\b|\d|[\"“{]|\?",
    re.IGNORECASE,
)
# A sentence with the whitespace behind it, so that line breaks survive.
SENTENCE_WITH_SPACE = re.compile(r"[^.!?\n]*(?:[.!?]+(?=\s|$)|\n|$)[ \t]*\n?")


@lru_cache(maxsize=8192)
def reduced(prompt: str) -> str:
    """Return the prompt without repetitions, politeness, fillers and long examples; unchanged if nothing can go."""
    text = "".join(s for s in SENTENCE_WITH_SPACE.findall(prompt) if not _REPETITION.match(s.strip())).strip()
    text = _LONG_EXAMPLE.sub("(see examples)", text)
    text = capital(_REQUESTS.sub("", text))
    text = _tidy(_FILLERS.sub("", text))
    # Long and hardly shorter: keep only the sentences that ask for or require something.
    if len(text) > 100 and len(text) > 0.9 * len(prompt):
        needed = [s for s in sentences(text) if _ASKS.search(s) or _BINDS.search(s) or len(s) < 30]
        shorter = _tidy(" ".join(needed)) if "\n" not in text else text
        text = shorter if len(shorter) >= SHORTEST_PROMPT else text
    text = capital(text)
    return text if SHORTEST_PROMPT <= len(text) < len(prompt) else prompt


def _tidy(text: str) -> str:
    text = re.sub(r"[ \t]+", " ", text)
    text = re.sub(r" +([,.;:!?])", r"\1", text)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def can_reduce(prompt: str) -> bool:
    """Return True if the saving is at least `SMALLEST_SAVING`."""
    return len(reduced(prompt)) <= (1.0 - SMALLEST_SAVING) * len(prompt)


def reduce(prompt: str) -> PromptVariation:
    """Return the shortened prompt."""
    text = reduced(prompt)
    percent = 100.0 * (1.0 - len(text) / max(len(prompt), 1))
    return variation(
        prompt,
        text,
        "context-reduction",
        f"leaves out {percent:.0f} % that asks for nothing",
        Impact(cost="decrease", latency="decrease"),
        reductionPercent=percent,
        targetReductionAchieved=percent >= 30.0,
    )


# A shorter fragment ("and tea") is part of a task, not a task.
SHORTEST_TASK = 15
# More pieces than this come from a long list of nouns, not from tasks.
MOST_TASKS = 8
_NEXT = re.compile(r"(?:\.|;)\s+(?:then|finally|next|also|after that|afterwards)[,\s]+|;\s+", re.IGNORECASE)
_WITH = re.compile(r"\s+with\s+", re.IGNORECASE)
_AND = re.compile(r",?\s+and\s+(?:then\s+)?", re.IGNORECASE)
STEPS_TITLE = "Work through these steps in order:"
# Sections that other mutations append; they hold no tasks.
_SECTION = re.compile(r"^(?:Technical Context|Detailed Steps|Example|Success Criteria|Constraints):", re.MULTILINE)


class PromptParts(NamedTuple):
    """A prompt split into its parts; together they hold all of its text."""

    intro: str
    """Text before a list of tasks."""
    tasks: tuple[str, ...]
    """Fewer than two for a simple prompt."""
    remainder: str
    """Text below the tasks."""


@lru_cache(maxsize=8192)
def parts(prompt: str) -> PromptParts:
    """Return the tasks of a prompt, and the text around them."""
    section = _SECTION.search(prompt)
    end = len(prompt) if section is None else section.start()
    request, remainder = prompt[:end], prompt[end:].strip()
    lines = request.strip().splitlines()
    listed = [i for i, line in enumerate(lines) if list_items(line)]
    if len(listed) >= 2:
        intro = "\n".join(lines[: listed[0]]).strip()
        below = "\n".join(line for line in lines[listed[0] :] if not list_items(line)).strip()
        tasks = tuple(capital(item) for item in list_items(request))
        return PromptParts(intro, tasks, "\n\n".join(x for x in (below, remainder) if x))
    for pattern in (_NEXT, _AND, _WITH):
        pieces = [piece.strip(" .\n") for piece in pattern.split(request.strip())]
        if pattern is _WITH and len(pieces) == 2 and len(pieces[1]) > SHORTEST_TASK:
            return PromptParts("", (capital(pieces[0]), f"Implement {pieces[1]}"), remainder)
        if pattern is not _WITH and 2 <= len(pieces) <= MOST_TASKS and all(len(p) > SHORTEST_TASK for p in pieces):
            return PromptParts("", tuple(capital(piece) for piece in pieces), remainder)
    return PromptParts("", (), remainder)


def can_decompose(prompt: str) -> bool:
    """Return True if there is more than one task and the prompt has not been split before."""
    return STEPS_TITLE not in prompt and len(parts(prompt).tasks) >= 2


def decompose(prompt: str) -> PromptVariation:
    """Return the tasks as steps of one prompt; the metadata has one prompt per task and one that combines the answers."""
    intro, tasks, remainder = parts(prompt)
    steps = "\n".join(f"{i}. {ended(task)}" for i, task in enumerate(tasks, 1))
    middle = f"{STEPS_TITLE}\n{steps}\nFinish each step before the next, and join the results into one answer."
    joined = "Join these parts into one whole:\n" + "\n".join(f"{i}. {task}" for i, task in enumerate(tasks, 1))
    orchestrator = f"{joined}\nSee that what one part gives is what the next one takes."
    return variation(
        prompt,
        "\n\n".join(part for part in (intro, middle, remainder) if part) if tasks else prompt,
        "task-decomposition",
        f"splits the prompt into {len(tasks)} steps" if tasks else "is simple already",
        Impact(quality="increase", cost="increase", latency="increase", reliability="increase"),
        subtasks=[ended(task) for task in tasks],
        orchestrator=orchestrator if tasks else "",
    )
