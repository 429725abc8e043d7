"""A lint for prompts: how specific a prompt is about its own task, with the reasons. It reads English.

Only sentences that belong to the request count: the request itself, and sentences that share a word with it or refer to
it. Of these, words that fit every task ("detailed", "edge cases", "step by step") count nothing. So a sentence that would
fit under any prompt cannot raise the score.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache

from surefoot.data.shipped_yaml import read_shipped
from surefoot.decide.prompts.text import VERBS, sentences, without_politeness, words

_SHIPPED = {
    name: frozenset(str(words).split()) for name, words in read_shipped("surefoot.decide.prompts", "lint.yaml").items()
}
_REQUESTS = _SHIPPED["requests"] | {verb for verbs in VERBS.values() for verb in verbs}
_QUESTIONS, _COMMON, _VAGUE = _SHIPPED["questions"], _SHIPPED["common"], _SHIPPED["vague"]
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_QUOTED = re.compile(r"```.*?```|`[^`\n]+`|\"[^\"\n]{2,}\"|“[^”\n]{2,}”|(?<!\w)'[^'\n]{2,}'(?!\w)", re.DOTALL)
# Numbers, and words that are written like names of things in programs: sales_2024.csv, isOpen, O(n).
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d.,:/-]*")
_IDENTIFIER = re.compile(r"\b\w+(?:[._]\w+)+\b|\b[a-z]+[A-Z]\w*\b|\b\w+\([^)\n]*\)")
_REFERS = re.compile(r"\b(?:it|its|they|them|their|he|she|him|his|her|this|these)\b", re.IGNORECASE)
_POINTS_DOWN = re.compile(r"\b(?:this|these|following|below|attached|given|text|passage)\b|:\s*$", re.IGNORECASE)
_MARKER = re.compile(r"^\s*(?:[-*•>]|\d{1,2}[.)])\s+")
_WANTED = re.compile(
    r"\b(?:(?:can|could|would|will) you|i(?:'d| would)? (?:want|need|like|wish)|you (?:need|have|should|must|are (?:asked|to))|"
    r"your task|the task is|we need|task:)\b",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"(?:using|given|based|for|in|with|if|from|as|on|after|before|when|without|assuming|consider\w*)\b", re.IGNORECASE
)
# Words that do not follow each other in a sentence, such as "the of", or end one: signs that words stand in no order.
_BROKEN = re.compile(
    r"\b(?:a|an|the|my|your|our|their|every) (?:a|an|the|of|and|or|is|are|was|to|in|on|at|for|from|with|by|if|because|than)\b|"
    r"\b(?:of|to|in|on|at|for|from|with|by|and|or|than) (?:of|and|or|is|are|was|were|than|because)\b|"
    r"\b(?:a|an|the|my|your|our|their|every|of|to|from|with|and|or|than)[.!?]?$|^(?:of|and|or|than) "
)
_LOWER, _UPPER = re.compile(r"(?<=[a-z][.!?]) [a-z]"), re.compile(r"(?:^|(?<=[a-z][.!?]) )[A-Z]")
_PERSONA = re.compile(r"(?:you are|you're|act as|as an?) ", re.IGNORECASE)


STEMS = ((r"ies$", "y"), (r"(ss|x|z|ch|sh)es$", r"\1"), (r"(?<![su])s$", ""), (r"(?:ing|ed|ly)$", ""), (r"e$", ""))
"""Endings of words, and their replacements."""
TERMS = ("subject", "details", "input", "wording")
"""Terms of the score."""


@dataclass(frozen=True, slots=True)
class Linted:
    """A lint score and its terms."""

    score: float
    """0 to 1."""
    breakdown: dict[str, float]
    """Contribution of each term; the score is their sum."""
    reasons: tuple[str, ...]
    """One sentence per thing that is missing."""

    @property
    def explanation(self) -> str:
        return "; ".join(self.reasons) or "nothing is missing"


@lru_cache(maxsize=65536)
def lint(prompt: str) -> Linted:
    """Return the lint score of a prompt.

        score = q · (1 - e^(-s/4)) · (0.35 + 0.35 (1 - e^(-d/2)) + 0.15 i + 0.15 v)

    with s distinct words that belong to this task, d exact details (numbers, quotations, names, identifiers), i = 1 if
    what the request points at is there, v = 1 without vague words, and q = 1 if there is a request in readable order.
    A product: details of a prompt that is about nothing count nothing.
    """
    parts = [_MARKER.sub("", sentence) for sentence in sentences(_QUOTED.sub(_inline, prompt))]
    if not parts:
        return Linted(0.0, {}, ("it is empty",))
    sizes = [len(content(part)) for part in parts]
    # The request with the most to say: an opening such as "Act as an expert." is not what the prompt is about.
    request = max(range(len(parts)), key=lambda i: (sizes[i] > 0 and asks(parts[i]), sizes[i], -i))
    # And what the prompt begins with: if the two have nothing in common, the lower score counts.
    # A beginning without content counts only where the request has little: "Think first." may stand before a real one.
    little = sizes[request] < 4
    first = next((i for i, size in enumerate(sizes) if (size or little) and not _PERSONA.match(parts[i])), request)
    related = _related(parts, request)
    if first in related:
        return _score(prompt, parts, related, request)
    both = (_score(prompt, parts, related, request), _score(prompt, parts, _related(parts, first), first))
    return min(both, key=lambda linted: linted.score)


def _score(prompt: str, parts: list[str], related: set[int], at: int) -> Linted:
    """Return the score of the sentences `related`, of which the one `at` is the request."""
    texts = [parts[i] for i in sorted(related)]
    specific, details = set[str](), set[str]()
    for part in texts:
        specific |= content(part)
        details |= _details(part)
    order = min(0.2 if _mixed_case(prompt) else 1.0, *(readable(part) for part in texts))
    present = _POINTS_DOWN.search(parts[at]) is None or _has_material(prompt, parts[at])
    vague = sorted({word for part in texts for word in words(part) if word in _VAGUE})
    request = any(asks(part) for part in texts)
    # Not 0: a sentence that asks for nothing may be a request in words that this lint does not know.
    subject = order * (1.0 if request else 0.4) * (1.0 - math.exp(-len(specific) / 4.0))
    terms = (0.35, 0.35 * (1.0 - math.exp(-len(details) / 2.0)), 0.15 * present, 0.15 * (not vague))
    breakdown = {name: subject * term for name, term in zip(TERMS, terms, strict=True)}
    count = sum(asks(part) for i, part in enumerate(parts) if i not in related)
    reasons = [
        *([] if request else ["no request was found: say what you want, or ask a question"]),
        *(["the words stand in no readable order"] if order < 1.0 else []),
        *(["its subject is unclear"] if len(specific) < 4 else []),
        *(["no exact detail: a number, a name, a quotation, an example"] if not details else []),
        *([] if present else ["it points at a text that is not there"]),
        *([f"vague: {', '.join(vague)}"] if vague else []),
        *([f"{count} {'sentence does' if count == 1 else 'sentences do'} not mention this task"] if count else []),
    ]
    return Linted(sum(breakdown.values()), breakdown, tuple(reasons))


def asks(sentence: str) -> bool:
    """Return True if a sentence begins with a verb that asks, states that something is wanted, or is a question."""
    plain = without_politeness(without_politeness(sentence)).lstrip("\"'“([")
    if _WANTED.search(plain):
        return True
    # "Using these numbers, compute ..." has its verb after the comma.
    start = plain.partition(", ")[2] if _OPENING.match(plain) else plain
    first = _WORD.match(start)
    word = "" if first is None else first[0].lower()
    if word in _REQUESTS:
        return True
    return word in _QUESTIONS and (sentence.rstrip().endswith("?") or word[:2] in ("wh", "ho"))


def content(sentence: str) -> set[str]:
    """Return the words of a sentence that say something about its own task, without endings."""
    return {_stem(word) for word in words(sentence) if not _empty(word)}


def readable(sentence: str) -> float:
    """Return 1 for words in a possible order, less for a list of words without order or without small words."""
    lower = words(sentence)
    if len(lower) < 5:
        return 1.0
    broken = len(_BROKEN.findall(sentence))
    small = sum(word in _COMMON for word in lower) / len(lower)
    # Sentences of English are a third to a half small words; lists of names have few, but commas.
    bare = len(lower) >= 8 and small < 0.12 and sentence.count(",") < len(lower) / 6
    return 0.2 if bare or broken >= 2 or broken > len(lower) / 12 else 1.0


def _mixed_case(prompt: str) -> bool:
    """Return True if several sentences begin in lower case after a full stop: people write all of them so, or none."""
    lower, upper = len(_LOWER.findall(prompt)), len(_UPPER.findall(prompt))
    return lower >= 2 and upper >= 1 and lower > upper / 2


def _inline(match: re.Match[str]) -> str:
    """Return a quotation on one line, so that its sentences are not split."""
    return re.sub(r"\s*\n\s*|(?<=[.!?])\s+", "\u00a0", match[0])


def _related(parts: list[str], at: int) -> set[int]:
    """Return the indices of the request, of the statements before it, and of the sentences that share a word with them."""
    # What a question or "it" is about stands before it: "A block slides down an incline. What is its speed?"
    refers = parts[at].rstrip().endswith("?") or _REFERS.search(parts[at]) is not None
    context = (
        refers and not asks(part) and not _PERSONA.match(part) and len(content(part)) >= 2 for part in parts[:at]
    )
    related = {at, *(i for i, is_context in enumerate(context) if is_context)}
    known = set[str]().union(*(content(parts[i]) for i in related))
    for i, part in enumerate(parts):
        if content(part) & known:
            related.add(i)
            known |= content(part)
    return related


def _details(part: str) -> set[str]:
    quoted = {match[0] for match in _QUOTED.finditer(part)}
    rest = _QUOTED.sub(" ", part)
    # Not the first word of a sentence, which is always in upper case.
    names = {w for w in _WORD.findall(rest)[1:] if w[0].isupper() and not _empty(w.lower())}
    return quoted | set(_NUMBER.findall(rest)) | set(_IDENTIFIER.findall(rest)) | names


def _has_material(prompt: str, request: str) -> bool:
    """Return True if a text, a quotation or code follows the request, or stands before it."""
    # "Which of these: a, b or c?" has it in the same sentence.
    if _QUOTED.search(prompt) or (":" in request and not request.rstrip().endswith(":")) or request.count(",") >= 2:
        return True
    others = [part for part in sentences(prompt) if request not in part and part not in request and not asks(part)]
    # Instructions that fit every task have hardly any content.
    return any(len(content(part)) >= 3 for part in others) or len(content(request)) >= 6


def _empty(word: str) -> bool:
    stem = _stem(word)
    return (
        len(word) < 3 or word in _COMMON or word in _VAGUE or word in _REQUESTS or stem in _GENERIC or stem in _ASKING
    )


@lru_cache(maxsize=65536)
def _stem(word: str) -> str:
    word = re.sub(r"['’]s?$", "", word)
    for ending, instead in STEMS:
        shorter = re.sub(ending, instead, word)
        word = shorter if len(shorter) >= 3 else word
    return word


_GENERIC = {_stem(word) for word in _SHIPPED["generic"]}
_ASKING = {_stem(word) for word in _REQUESTS}
