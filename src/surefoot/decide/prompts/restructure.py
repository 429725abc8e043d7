"""Mutations that rearrange or repeat a prompt's own text: steps, labelled parts, the task once more; and the one that cuts."""

from __future__ import annotations

import re
from functools import lru_cache

from surefoot.decide.prompts.structure import CUE, FENCE, append, split_material, structure
from surefoot.decide.prompts.text import TOKEN, capital, ended, leading_verb, list_items, sentences

# Constants and patterns are copied to the TypeScript client by its scripts/tables.py.
# A smaller saving does not justify a change of wording.
SMALLEST_SAVING = 0.05
# Below 10 characters nothing is left that could be a request.
SHORTEST_PROMPT = 10
_FILLERS = re.compile(
    r"\b(?:as you (?:may )?know|it is (?:important|worth) (?:to note|noting) that|obviously|of course|needless to say|"
    r"to be honest|just|really|actually|simply|kind of|sort of)\b(?!['’-]),?[ \t]*",
    re.IGNORECASE,
)
_REQUESTS = re.compile(
    r"^(?:(?:hi|hello|hey)\b[^.!?\n]{0,40}[.!,]\s*)?(?:i would like you to|i'd like you to|i want you to|i need you to|"
    r"please|kindly)\s+",
    re.IGNORECASE,
)
# A filler next to one of these is a word of the task, such as "just" in a quotation or in code.
_PROTECTED = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|\"[^\"\n]*\"|“[^”\n]*”|(?<!\w)'[^'\n]*'(?!\w)|\{[^}\n]*\}|https?://\S+", re.DOTALL
)


@lru_cache(maxsize=8192)
def reduced(prompt: str) -> str:
    """Return the prompt without politeness and fillers, both outside quotations and code; unchanged if nothing can go."""
    text, place = "", 0
    for match in [*_PROTECTED.finditer(prompt), None]:
        end = len(prompt) if match is None else match.start()
        text += _FILLERS.sub("", prompt[place:end])
        if match is not None:
            text, place = text + match[0], match.end()
    text = capital(_REQUESTS.sub("", text.lstrip())).rstrip()
    return text if SHORTEST_PROMPT <= len(text) < len(prompt.strip()) else prompt


def can_reduce(prompt: str) -> bool:
    """Return True if the saving is at least `SMALLEST_SAVING`."""
    return len(reduced(prompt)) <= (1.0 - SMALLEST_SAVING) * len(prompt.strip())


# More pieces than this are a text, not a list of tasks.
MOST_TASKS = 8
STEPS_TITLE = "Work through these steps in order:"
ITEMS_LINE = "Work through the list above in order, one item at a time."
_ORDER = re.compile(
    r"^(?:first|then|next|finally|after that|afterwards|lastly|also|second|third)\b[,\s]*", re.IGNORECASE
)
_PIECES = re.compile(r"(?<=[.;])\s+")


@lru_cache(maxsize=8192)
def tasks(prompt: str) -> tuple[str, ...]:
    """Return the tasks of a prompt: its list items, or its sentences; fewer than two if it is not a sequence of requests.

    Every list item or sentence must begin with an imperative, and sentences must say their order ("then", "finally"):
    the premises of a puzzle or the lines of a pasted text are not tasks.
    """
    body = prompt.strip()
    items = list_items(body)
    if len(items) >= 2:
        return tuple(items) if all(leading_verb(item) for item in items) else ()
    pieces = tuple(_PIECES.split(body)) if "\n" not in body and FENCE not in body else ()
    orders = sum(_ORDER.match(piece) is not None for piece in pieces)
    asks = all(leading_verb(_ORDER.sub("", piece)) for piece in pieces)
    return pieces if 2 <= len(pieces) <= MOST_TASKS and orders and asks else ()


def decompose(prompt: str) -> str:
    """Return the prompt with its sentences as numbered steps, or with a line that says how to go through its list."""
    pieces = tasks(prompt)
    if not pieces:
        return prompt
    if list_items(prompt):
        return append(prompt, ITEMS_LINE)
    steps = "\n".join(f"{i}. {capital(piece)}" for i, piece in enumerate(pieces, 1))
    return f"{STEPS_TITLE}\n{steps}"


def orchestrator(pieces: tuple[str, ...]) -> str:
    """Return a prompt that joins the answers to the single tasks."""
    numbered = "\n".join(f"{i}. {ended(piece)}" for i, piece in enumerate(pieces, 1))
    return f"Join the results of these tasks into one answer:\n{numbered}"


AGAIN = "Again, the task:"
# A longer instruction costs more than its repetition can gain.
LONGEST_REPEATED = 45


def can_restate(prompt: str) -> bool:
    """Return True if text stands between the instruction and the end of the prompt."""
    parts = structure(prompt)
    if not parts.instruction or AGAIN in prompt or len(TOKEN.findall(parts.instruction)) > LONGEST_REPEATED:
        return False
    return not CUE.sub("", prompt.rstrip()).rstrip().endswith(parts.instruction)


def restate(prompt: str) -> str:
    """Return the prompt with its instruction once more at the end."""
    return append(prompt, f"{AGAIN} {structure(prompt).instruction}")


_LABELLED = re.compile(r"(?:^|\n)[ \t]*(?:task|instructions?|question|input|text|context)[ \t]*:", re.IGNORECASE)


def can_label(prompt: str) -> bool:
    """Return True if an instruction is followed by the text it is about, and neither has a label."""
    parts = structure(prompt)
    return bool(parts.instruction and parts.material) and _LABELLED.search(prompt) is None


def label(prompt: str) -> str:
    """Return the prompt with the labels "Task:" and "Input:" before the instruction and the text it is about."""
    cue = CUE.search(prompt.rstrip())
    body = prompt.rstrip()[: cue.start()] if cue else prompt
    head, material = split_material(body)
    # A text that names itself ("Message: ...") needs no second label.
    named = re.match(r"[A-Z][\w' ]{0,24}:", material)
    text = f"Task: {head}\n\n{material if named else f'Input:{chr(10)}{material}'}"
    return f"{text}\n\n{cue[0].strip()}" if cue else text


def long_enough(prompt: str) -> bool:
    """Return True if the prompt has more than one sentence."""
    return len(sentences(prompt)) > 1
