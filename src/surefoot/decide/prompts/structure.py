"""The parts of a prompt that mutations must respect: what it asks, the text it asks about, and the form of its answer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from string import ascii_uppercase
from typing import Any, Literal

from surefoot.data.shipped_yaml import read_shipped
from surefoot.decide.prompts.text import VERBS, sentences, without_politeness

Form = Literal["option", "yes-no", "short", "text", "open"]
"""What the answer is: one of the options in the prompt, yes or no, a few words, a finished text, or anything else."""

# Constants and patterns are copied to the TypeScript client by its scripts/tables.py.
CUE = re.compile(r"(?:\n|^)[ \t]*(?:answer|output|response|result|solution|reply|a)[ \t]*:[ \t]*$", re.IGNORECASE)
"""A last line that only waits for the answer, such as "Answer:"."""
STRICT = re.compile(
    r"\bnothing else\b|\bno other (?:words|text)|\b(?:only|just) (?:with|the|one|respond|answer|reply|output)\b|"
    r"\b(?:entire|whole) (?:response|output|reply|answer)|\bin (?:one|a single) word\b|\bdo not (?:say|add|include|explain)|"
    r"\brepeat the (?:request|prompt)|\bword for word\b|\bexactly (?:one|two|three|\d+)\b|\bwithout (?:any )?explanation",
    re.IGNORECASE,
)
"""A prompt that fixes the form of its answer; more requirements could contradict it."""
FENCE = "```"

_QUOTED = r"(?:\"([^\"\n]{1,40})\"|“([^”\n]{1,40})”|(?<!\w)'([^'\n]{1,40})'(?!\w)|‘([^’\n]{1,40})’)"
_QUOTED_OPTIONS = re.compile(rf"{_QUOTED}(?:\s*(?:,\s*or|,|/|or)\s*{_QUOTED})+")
_EITHER = re.compile(
    r"\b(?:respond|answer|reply|say|return|output)\s+(\w+) if\b[^.\n]*?,\s*(?:and\s+)?(\w+) otherwise", re.IGNORECASE
)
_LISTED = re.compile(
    r"\b(?:(?:which|one) of (?:these|the following|the)|one of|options|choices|classes|labels|categories|"
    r"choose (?:from|between|among)|"
    r"possible (?:answers|values))\b[^:\n?]{0,80}:[ \t]*([^\n?]+)",
    re.IGNORECASE,
)
_LISTED_LINES = re.compile(
    r"\b(?:options|choices|classes|labels|categories|functions|tools|topics|one of (?:these|the following))\b"
    r"[^:\n]{0,60}:[ \t]*\n"
    r"((?:[ \t]*(?:[-*•]|\d{1,2}[.)])[ \t]+\S[^\n]*\n?){2,})",
    re.IGNORECASE,
)
_LETTERED = re.compile(r"(?:^|(?<=\s))(\(?)([A-Z])([.):])(?=\s)")
_AS_OR = re.compile(
    r"\b(?:classif\w+|label|categori[sz]e|decide|determine|tell|judge|identify)\b[^.?\n]{0,80}?"
    r"\b(?:as|is|are|into|whether it is)\s+(?:an? )?"
    r"((?:[\w-]+,\s*)*[\w-]+,?\s+or\s+(?:not )?(?:an? )?[\w-]+)",
    re.IGNORECASE,
)
_PLAIN_OR = re.compile(
    r"\b(true|yes|correct|valid|positive)\s*(?:or|/)\s*(false|no|incorrect|invalid|negative)\b", re.IGNORECASE
)
_ASKED_OR = re.compile(
    rf"\b(?:respond|answer|reply|say|return|output)\b[^.\n]{{0,30}}?{_PLAIN_OR.pattern}", re.IGNORECASE
)
_COMMAS = re.compile(r"\s*[,;/]\s*(?:(?:or|and)\s+)?")
_OR = re.compile(r"\s*,?\s+or\s+")
# "Can you write ...?" is a request, not a question with the answer yes or no.
_YES_NO = re.compile(
    r"^(?:is|are|was|were|do|does|did|has|have|had|will|would|should|can|could|may|might)\s+(?!you\b)[\w\"'“]",
    re.IGNORECASE,
)
_SHORT = re.compile(
    r"^(?:who|whom|whose|when|where|which|how (?:many|much|old|far|long|tall|often)|"
    r"what (?:is|are|was|were) (?:the|my|its|his|her)?"
    r"\s*(?:name|date|year|number|sum|product|capital|result|value|answer|total|word|author|color|colour|age|price|"
    r"probability|percentage|area|volume|speed|time|sentiment|tone|category|opposite|antonym|synonym)|"
    r"what (?:is|are) [-(]*\d+|what (?:year|day|time|number|word|color|"
    r"colour|country|city))\b",
    re.IGNORECASE,
)
_SUM = re.compile(r"[-\d\s()+*/^.×÷]+=\s*\??\s*$")
_SHORT_VERB = re.compile(
    r"\b(?:calculate|compute|solve|evaluate|count|determine the (?:number|value)|identify|classify)\b", re.IGNORECASE
)
_LONG = re.compile(
    r"\b(?:why|explain|describe|discuss|outline|analy[sz]e|essay|paragraph|story|give reasons|in detail)\b",
    re.IGNORECASE,
)
_TEXT = re.compile(
    r"\b(?:write|rewrite|draft|compose|translate|summari[sz]e|paraphrase|rephrase|edit|proofread|correct|convert|generate|create|"
    r"complete|fill in|extract)\b",
    re.IGNORECASE,
)
_LABEL = re.compile(r"^[ \t]*[A-Z][\w ]{0,20}:", re.MULTILINE)
_VERB = re.compile(
    rf"^(?:{'|'.join(v for verbs in VERBS.values() for v in verbs)}|give|tell|name|suggest|find|choose|answer|calculate|"
    r"compute|count|identify)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Structure:
    """What a prompt consists of."""

    instruction: str
    """The sentence that asks: the last question outside the given text, else the first imperative; may be empty."""
    material: str
    """The paragraphs below the instruction, such as a text to translate; empty if there are none."""
    options: tuple[str, ...]
    """The answers that the prompt allows."""
    form: Form
    cue: str
    """The last line if it only waits for the answer, such as "Answer:"."""
    strict: bool
    """True if the prompt fixes the form of its answer."""
    kind: str
    """Name in kinds.yaml; empty if no sign is found."""

    @property
    def closed(self) -> bool:
        """Return True if the answer is an option, yes or no, or a few words: further requirements cannot improve it."""
        return self.form in ("option", "yes-no", "short")


KINDS: dict[str, dict[str, Any]] = read_shipped("surefoot.decide.prompts", "kinds.yaml")
_SIGNS = {name: re.compile(kind["sign"], re.IGNORECASE | re.DOTALL) for name, kind in KINDS.items()}


@lru_cache(maxsize=65536)
def structure(prompt: str) -> Structure:
    cue = CUE.search(prompt.rstrip())
    body = prompt.rstrip()[: cue.start()] if cue else prompt
    head, material = split_material(body)
    asks = [s for s in sentences(head) if "?" in s or _VERB.match(without_politeness(s))]
    questions = [s for s in asks if s.endswith("?")]
    instruction = questions[-1] if questions else asks[0] if asks else ""
    options = find_options(body)
    # The first lines hold the request; a pasted text below them can contain anything.
    kind = next((name for name, sign in _SIGNS.items() if sign.search(head)), "")
    return Structure(
        instruction=instruction,
        material=material,
        options=options,
        form=_form(head, instruction, options),
        cue=cue[0].strip() if cue else "",
        strict=STRICT.search(body) is not None,
        kind=kind,
    )


def split_material(body: str) -> tuple[str, str]:
    """Return (the paragraphs that ask, the text below them that they ask about)."""
    head, gap, material = body.strip().partition("\n\n")
    if not gap and body.strip().count("\n") >= 1:
        first, _, rest = body.strip().partition("\n")
        if first.rstrip().endswith(":"):
            head, material = first, rest
    return head, material.strip()


def _form(head: str, instruction: str, options: tuple[str, ...]) -> Form:
    if options:
        return "option"
    question = re.sub(r"^(?:question|q)\s*:\s*", "", instruction, flags=re.IGNORECASE)
    if _YES_NO.match(question) and not _TEXT.search(head):
        return "yes-no"
    if (
        (_SHORT.match(question) or _SHORT_VERB.search(instruction) or _SUM.match(head))
        and not _LONG.search(head)
        and not _TEXT.search(head)
    ):
        return "short"
    return "text" if _TEXT.search(head) else "open"


def find_options(body: str) -> tuple[str, ...]:
    """Return the answers that a prompt lists, in its own spelling; empty if it lists fewer than two."""
    options: list[str] = []
    if match := _LISTED_LINES.search(body):
        lines = [re.sub(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+", "", line) for line in match[1].strip().splitlines()]
        options = [re.split(r":\s|\s[-–—]\s", line)[0].strip() for line in lines]
    elif match := _QUOTED_OPTIONS.search(body):
        options = [next(x for x in groups if x) for groups in re.findall(_QUOTED, match[0])]
    elif match := _EITHER.search(body):
        options = [match[1], match[2]]
    elif letters := _letters(body):
        options = letters
    elif match := _ASKED_OR.search(body):
        options = [match[1], match[2]]
    elif match := _LISTED.search(body) or _AS_OR.search(body):
        commas = [each.strip(" .") for each in _COMMAS.split(match[1].strip())]
        # "a, b or c" has its last two in one piece; in "lost or stolen card, top up, ATM" the "or" belongs to an option.
        options = [*commas[:-1], *(each.strip(" .") for each in _OR.split(commas[-1]))]
    elif match := _PLAIN_OR.search(body):
        options = [match[1], match[2]]
    # "spam or not" has one option and a word.
    options = [each for each in dict.fromkeys(options) if each and len(each) <= 60 and each.lower() != "not"]
    # More than 12 are a list of things, not of answers.
    return tuple(options) if 2 <= len(options) <= 12 else ()


def _letters(body: str) -> list[str]:
    """Return the letters of a lettered list, A, B, ... without a gap, in parentheses if the list has them."""
    first: dict[str, str] = {}
    for opening, letter, closing in _LETTERED.findall(body):
        first.setdefault(letter, f"({letter})" if opening and closing == ")" else letter)
    letters = [first[letter] for letter in ascii_uppercase if letter in first]
    # A gap: these are not the letters of one list, such as the initials of names.
    return letters if len(letters) >= 2 and set(ascii_uppercase[: len(letters)]) <= first.keys() else []


def append(prompt: str, addition: str) -> str:
    """Return the prompt with a paragraph added at its end, above a line that waits for the answer."""
    text = prompt.rstrip()
    cue = CUE.search(text)
    if cue is None or not text[: cue.start()].strip():
        return f"{text}\n\n{addition}"
    return f"{text[: cue.start()].rstrip()}\n\n{addition}\n\n{cue[0].strip()}"
