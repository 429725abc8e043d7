"""Measures of a prompt's text from 0 to 1: six general ones, and three per category."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache

from surefoot.data.shipped_yaml import read_shipped
from surefoot.decide.prompts.classify import METRICS
from surefoot.decide.prompts.text import list_items, sentences, tokens, words

GENERAL = ("clear", "specific", "complete", "robust", "ordered", "brief")
"""Measures that apply to every category."""

_VAGUE = frozenset(
    {"thing", "things", "stuff", "something", "somehow", "some", "good", "nice", "better", "etc", "whatever", "maybe"}
    | {"probably", "very", "really", "just"}
)

_EVIDENCE = {
    name: [re.compile(sign, re.I | re.S) for sign in signs]
    for name, signs in read_shipped("surefoot.decide.prompts", "measures.yaml").items()
}
_BINDING = re.compile(
    r"\b(?:must|should|only|exactly|at least|at most|fewer|less than|more than|no more|without|do not|don't|avoid|never|"
    r"always)\b",
    re.I,
)
_DETAIL = re.compile(r"\d+|\"[^\"]{2,}\"|“[^”]{2,}”|'[^']{3,}'|\b[A-Z][a-z]+ [A-Z][a-z]+|\{[a-z_]+\}")
_PARTS = (
    re.compile(r"\b(?:example|for instance|e\.g\.|such as)", re.I),
    re.compile(r"\b(?:success criteria|criteria|goal|purpose|so that)\b", re.I),
    re.compile(r"\b(?:context|background|given|you are|acting as|as an? \w+,)", re.I),
    re.compile(r"\b(?:format|json|table|bullet|list|paragraphs?|words|sentences|answer with|respond)\b", re.I),
)
_WAY_OUT = re.compile(
    r"\bif (?:[^.]{0,60}\b(?:cannot|can't|not possible|difficult\w*|unsure|not certain|missing)|you run into)|workaround|"
    r"alternatives?\b",
    re.I,
)
_STEPS = re.compile(r"\b(?:first|then|next|finally|step \d|in order)\b", re.I)


def measures(prompt: str) -> dict[str, float]:
    """Return every measure of a prompt by name."""
    return dict(zip(NAMES, _measured(prompt), strict=True))


@lru_cache(maxsize=65536)
def _measured(prompt: str) -> tuple[float, ...]:
    """Return the measures in the order of NAMES."""
    all_words = words(prompt)
    clear = 0.0
    # Clear: short sentences (full score up to 10 words, none from 50) and few vague words (none from one in ten).
    if all_words:
        mean = len(all_words) / max(1, len(sentences(prompt)))
        vague = sum(word in _VAGUE for word in all_words) / len(all_words)
        clear = max(0.0, min(1.0, 1.25 - mean / 40.0)) * max(0.0, 1.0 - 10.0 * vague)
    # Specific: numbers, names, quoted words and binding words; six give the full score.
    specific = min(1.0, (len(_DETAIL.findall(prompt)) + len(_BINDING.findall(prompt))) / 6.0)
    complete = _share(_PARTS, prompt)
    robust = 1.0 if _WAY_OUT.search(prompt) else 0.0
    # Ordered: list items and words of order; four give the full score.
    ordered = min(1.0, (len(list_items(prompt)) + len(_STEPS.findall(prompt))) / 4.0)
    # Brief: falls to 37 % at 150 tokens, about ten lines.
    brief = math.exp(-tokens(prompt) / 150.0)
    evidence = (_share(_EVIDENCE[name], prompt) for name in NAMES[len(GENERAL) :])
    return (clear, specific, complete, robust, ordered, brief, *evidence)


def _share(patterns: Sequence[re.Pattern[str]], prompt: str) -> float:
    return sum(pattern.search(prompt) is not None for pattern in patterns) / len(patterns)


NAMES = (*GENERAL, *dict.fromkeys(name for names in METRICS.values() for name in names))
"""Every measure, the general ones first."""
