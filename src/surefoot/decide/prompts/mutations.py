"""The mutations by name and number. None of them removes a word of the prompt, except context-reduction with `allow_cut`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from surefoot.decide.prompts import restructure
from surefoot.decide.prompts.classify import classify
from surefoot.decide.prompts.structure import FENCE, KINDS, Form, append, structure
from surefoot.decide.prompts.text import ended, leading_verb
from surefoot.decide.prompts.variation import Impact, PromptVariation, variation
from surefoot.errors import ConfigError

# Constants and patterns are copied to the TypeScript client by its scripts/tables.py.
_HAS_FALLBACK = re.compile(
    r"\bif (?:you|this|that|it|any|part|something|a condition|information|there)\b[^.\n]{0,60}"
    r"\b(?:can't|cannot|can not|not possible|unable|difficult\w*|isn't|unsure|not (?:sure|certain|clear)|missing|no answer)",
    re.IGNORECASE,
)
_CONDITION = re.compile(r"\b(?:if|when|unless)\b", re.IGNORECASE)
# By the kind of verb that the prompt starts with.
_FALLBACKS = {
    "fix": ("fix-with-fallback", "If something needed for this is missing, say what you assumed instead."),
    "create": ("create-with-alternatives", "If part of this is not possible, say which part and why, and do the rest."),
    "analyse": ("analyze-with-partial", "If something cannot be determined from what is given, say what is missing."),
}
_CONDITIONAL = ("conditional-breakdown", "If a condition cannot be met, say which one.")
_OTHER_FALLBACK = ("general-with-explanation", "If information is missing, say what is missing instead of guessing.")


def _fallback(prompt: str) -> tuple[str, str]:
    verb = leading_verb(prompt)
    if verb is not None:
        return _FALLBACKS.get(verb[1], _OTHER_FALLBACK)
    return _CONDITIONAL if _CONDITION.search(prompt) and restructure.long_enough(prompt) else _OTHER_FALLBACK


def add_fallback(prompt: str) -> PromptVariation:
    """Return the prompt with an instruction for the case that it cannot be followed."""
    kind, fallback = _fallback(prompt)
    text = append(prompt, fallback)
    return variation(
        prompt,
        text,
        "try-catch-style",
        "says what to do where the request cannot be met",
        Impact(cost="increase", reliability="increase"),
        transformationType=kind,
        lengthIncrease=len(text) - len(prompt),
    )


def reduce(prompt: str) -> PromptVariation:
    """Return the prompt without politeness and fillers."""
    text = restructure.reduced(prompt)
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


# Two per mutation and four in all: the policy can choose the mutation twice. More would bury the request.
ADDED_CONSTRAINTS = 2
MOST_CONSTRAINTS = 4
CONSTRAINTS_TITLE = "Constraints:"
CRITERIA_TITLE = "A complete answer has:"
_LISTED = re.compile(rf"{CONSTRAINTS_TITLE}\n(?:- .*\n?)+\Z")


class _Requirement(NamedTuple):
    text: str
    present: re.Pattern[str]
    """Matches a prompt that already says something about it."""


def _requirements(name: str) -> dict[str, tuple[_Requirement, ...]]:
    return {
        kind: tuple(_Requirement(text, re.compile(pattern, re.IGNORECASE)) for text, pattern in entry[name])
        for kind, entry in KINDS.items()
    }


CONSTRAINTS, CRITERIA = _requirements("constraints"), _requirements("criteria")
"""By kind of work."""


def missing(table: dict[str, tuple[_Requirement, ...]], prompt: str) -> list[str]:
    """Return the requirements of the prompt's kind that it says nothing about; none if its answer has a fixed form."""
    parsed = structure(prompt)
    if parsed.strict or parsed.closed:
        return []
    return [each.text for each in table.get(parsed.kind, ()) if not each.present.search(prompt)]


def expand(prompt: str) -> PromptVariation:
    """Return the prompt with a list of what a complete answer has."""
    criteria = missing(CRITERIA, prompt)
    lines = "\n".join(f"- {text}" for text in criteria)
    return variation(
        prompt,
        append(prompt, f"{CRITERIA_TITLE}\n{lines}") if criteria else prompt,
        "expansion",
        f"adds what a complete answer has: {'; '.join(criteria)}" if criteria else "has nothing to add",
        Impact(quality="increase", cost="increase", latency="increase", reliability="increase"),
        sections=[CRITERIA_TITLE[:-1]] if criteria else [],
    )


def _constrained(prompt: str) -> int:
    return sum(each.text in prompt for entries in CONSTRAINTS.values() for each in entries)


def add_constraints(prompt: str) -> PromptVariation:
    """Return the prompt with the next two constraints of its kind of work."""
    chosen = missing(CONSTRAINTS, prompt)[:ADDED_CONSTRAINTS]
    lines = "\n".join(f"- {text}" for text in chosen)
    listed = _LISTED.search(prompt.rstrip()) is not None
    text = f"{prompt.rstrip()}\n{lines}" if listed else append(prompt, f"{CONSTRAINTS_TITLE}\n{lines}")
    return variation(
        prompt,
        text if chosen else prompt,
        "constraint-addition",
        f"adds constraints: {'; '.join(chosen)}" if chosen else "has nothing to add",
        Impact(quality="increase", cost="increase", reliability="increase"),
        constraints=chosen,
        category=classify(prompt).category,
    )


def decompose(prompt: str) -> PromptVariation:
    """Return the tasks as steps of one prompt; the metadata has one prompt per task and one that combines the answers."""
    pieces = restructure.tasks(prompt)
    return variation(
        prompt,
        restructure.decompose(prompt),
        "task-decomposition",
        f"asks for {len(pieces)} steps in order" if pieces else "is simple already",
        Impact(quality="increase", cost="increase", latency="increase", reliability="increase"),
        subtasks=[ended(piece) for piece in pieces],
        orchestrator=restructure.orchestrator(pieces) if pieces else "",
    )


CUE_LINE = "Answer:"
STEPS_LINE = "Work it out step by step, then give the answer on the last line."
_FORM_LINES: dict[Form, str] = {
    "option": "The answer is one of: {options}.",
    "yes-no": "Begin your reply with yes or no.",
    "short": "Give the answer first, in as few words as possible.",
    "text": "Reply with the finished text only, without an introduction.",
}
_CODE_LINE = "Put the code first and the explanation below it."
_FORM_STARTS = (_CODE_LINE, *(line.partition("{")[0] for line in _FORM_LINES.values()))
# Below one of these, the last paragraph is not the text that the task is about.
_ADDED = (
    *(*_FORM_STARTS, STEPS_LINE, CONSTRAINTS_TITLE, CRITERIA_TITLE, restructure.ITEMS_LINE, restructure.AGAIN),
    *(text for _, text in (*_FALLBACKS.values(), _CONDITIONAL, _OTHER_FALLBACK)),
)
_HAS_ROLE = re.compile(
    r"\b(?:you are|you're|act(?:ing)? as|in (?:the|your) role|pretend|imagine (?:you|that you)|as an? \w+,)",
    re.IGNORECASE,
)
_HAS_STEPS = re.compile(r"\bstep[- ]by[- ]step\b|\beach step\b", re.IGNORECASE)


def form_line(prompt: str) -> str:
    """Return the sentence that says which form the answer has; empty if it can have any."""
    parsed = structure(prompt)
    if parsed.kind in ("code", "code_review"):
        return _CODE_LINE
    return _FORM_LINES.get(parsed.form, "").format(options=", ".join(parsed.options))


def _plain(name: str, about: str, apply: Callable[[str], str]) -> Callable[[str], PromptVariation]:
    impact = Impact(quality="increase", cost="increase")
    return lambda prompt: variation(prompt, apply(prompt), name, about, impact)


@dataclass(frozen=True, slots=True)
class _Mutation:
    possible: Callable[[str], bool]
    """False if the mutation would change nothing, repeat itself or contradict the prompt."""
    apply: Callable[[str], PromptVariation]


def _open(prompt: str) -> bool:
    parsed = structure(prompt)
    return not (parsed.strict or parsed.closed)


_ALL: dict[str, _Mutation] = {
    "try-catch-style": _Mutation(lambda p: _open(p) and _HAS_FALLBACK.search(p) is None, add_fallback),
    "context-reduction": _Mutation(restructure.can_reduce, reduce),
    "expansion": _Mutation(lambda p: CRITERIA_TITLE not in p and len(missing(CRITERIA, p)) > 0, expand),
    "constraint-addition": _Mutation(
        lambda p: _constrained(p) + ADDED_CONSTRAINTS <= MOST_CONSTRAINTS and len(missing(CONSTRAINTS, p)) > 0,
        add_constraints,
    ),
    "task-decomposition": _Mutation(
        lambda p: (
            len(restructure.tasks(p)) > 1 and restructure.ITEMS_LINE not in p and restructure.STEPS_TITLE not in p
        ),
        decompose,
    ),
    "answer-form": _Mutation(
        lambda p: (
            bool(form_line(p))
            and not any(start in p for start in (*_FORM_STARTS, STEPS_LINE))
            and not structure(p).strict
        ),
        _plain("answer-form", "says which form the answer has", lambda p: append(p, form_line(p))),
    ),
    "answer-cue": _Mutation(
        lambda p: not structure(p).cue,
        _plain("answer-cue", "ends with a line that waits for the answer", lambda p: append(p, CUE_LINE)),
    ),
    "restatement": _Mutation(
        restructure.can_restate,
        _plain("restatement", "repeats the task below the text it is about", restructure.restate),
    ),
    "labelled-parts": _Mutation(
        lambda p: restructure.can_label(p) and not any(start in p for start in _ADDED),
        _plain("labelled-parts", "labels the task and the text it is about", restructure.label),
    ),
    "role": _Mutation(
        lambda p: (
            (_open(p) or "steps" in KINDS.get(structure(p).kind, ()))
            and bool(structure(p).kind)
            and _HAS_ROLE.search(p) is None
        ),
        _plain("role", "says who answers", lambda p: f"You are {KINDS[structure(p).kind]['role']}.\n\n{p.strip()}"),
    ),
    "step-by-step": _Mutation(
        lambda p: (
            "steps" in KINDS.get(structure(p).kind, ())
            and not structure(p).strict
            and _HAS_STEPS.search(p) is None
            and not any(start in p for start in _FORM_STARTS)
        ),
        _plain("step-by-step", "asks for the steps before the answer", lambda p: append(p, STEPS_LINE)),
    ),
}
MUTATIONS = tuple(_ALL)
"""In the order of their numbers."""
WIRE_MUTATIONS = MUTATIONS[:5]
"""The five of `surefoot serve --compat directive-023` and of the TypeScript client, in the order of their numbers on the wire."""
STOP = "stop"
ACTIONS = (*MUTATIONS, STOP)
"""Actions of the policy: the mutations, then stop."""
ABOUT = {
    "try-catch-style": "says what to do where the request cannot be met",
    "context-reduction": "leaves out politeness and fillers",
    "expansion": "adds what a complete answer has",
    "constraint-addition": "adds two constraints of the kind of work",
    "task-decomposition": "asks for steps in order",
    "answer-form": "says which form the answer has",
    "answer-cue": "ends with a line that waits for the answer",
    "restatement": "repeats the task below the text it is about",
    "labelled-parts": "labels the task and the text it is about",
    "role": "says who answers",
    "step-by-step": "asks for the steps before the answer",
    "examples": "begins with examples and their answers",
    STOP: "leaves the prompt as it is",
}
"""What each action does."""
_CUTS = "context-reduction"


def mutate(prompt: str, mutation: str | int) -> PromptVariation:
    """Return the prompt after a mutation. The same prompt and mutation give the same text.

    Args:
        prompt: Any text.
        mutation: Name or number in `MUTATIONS`.
    """
    name: Any = MUTATIONS[mutation] if isinstance(mutation, int) and 0 <= mutation < len(MUTATIONS) else mutation
    if name not in _ALL:
        raise ConfigError(
            f"unknown mutation {mutation!r}; use one of {', '.join(MUTATIONS)} (0 to {len(MUTATIONS) - 1})"
        )
    return _ALL[name].apply(prompt)


def allowed(prompt: str, *, allow_cut: bool = False) -> np.ndarray:
    """Return the action mask over `ACTIONS`, [A] bool. Mutations that remove words need `allow_cut`."""
    # In an unclosed code block an added line would be code.
    usable = bool(prompt.strip()) and prompt.count(FENCE) % 2 == 0
    mask = [usable and (allow_cut or name != _CUTS) and each.possible(prompt) for name, each in _ALL.items()]
    return np.array([*mask, True])
