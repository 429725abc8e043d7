"""What can be seen in a prompt, each as a number from 0 to 1: six of any prompt, three of each category."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import lru_cache

from surefoot.decide.prompts.classify import METRICS
from surefoot.decide.prompts.text import list_items, sentences, tokens, words

GENERAL = ("clear", "specific", "complete", "robust", "ordered", "brief")
"""Of any prompt."""

_VAGUE = frozenset(
    {"thing", "things", "stuff", "something", "somehow", "some", "good", "nice", "better", "etc", "whatever", "maybe"}
    | {"probably", "very", "really", "just"}
)

_EVIDENCE: dict[str, tuple[str, ...]] = {
    "correctness": (
        r"edge cases?|corner cases?|empty (?:list|input|string)",
        r"handle errors?|exceptions?|error handling|invalid",
        r"\bcorrect\w*|it runs|valid\w*",
        r"\binput\b.*\b(?:output|gives|returns?)\b",
    ),
    "types": (
        r"type annotations?|\btyped?\b|type hints?|type safety",
        r"typescript|schema|interface",
        r"wrong type|data types?",
    ),
    "tests": (r"\bunit tests?|\btest cases?|\btests?\b", r"coverage|assert", r"edge cases?"),
    "security": (r"secur\w+|vulnerabilit\w+", r"injection|sanitiz\w+|authenticat\w+|permission", r"severity"),
    "performance": (r"performance|efficien\w+|fast\w*|slow\w*", r"complexity|memory|latency", r"costs? in|measure"),
    "readability": (r"readab\w+|naming|clean", r"comment|document\w*", r"corrected lines|structure"),
    "clarity": (
        r"clear\w*|simple|plain|easy to follow",
        r"main point|summary",
        r"below \d+ words|short (?:sentences|paragraphs)|sentences below",
    ),
    "structure": (
        r"headings?|sections?|outline|structure\w*",
        r"paragraphs?|introduction|conclusion|summary",
        r"bullet|numbered|list|steps",
    ),
    "tone": (
        r"\btone\b|formal|informal|friendly|professional",
        r"audience|readers?|beginners?|new to",
        r"style|voice|jargon",
    ),
    "cta": (r"call to action|sign up|subscribe|buy now|\bact now\b", r"reason to act|click|order|contact"),
    "benefits": (r"benefits?|value|advantage", r"customers?|users?|audience|one kind of", r"problem|need|pain"),
    "conversion": (
        r"convert|conversion|persuasive|convinc\w+",
        r"number or a quote|testimonial|proof|evidence",
        r"headline|hook|attention|active voice",
    ),
    "methodology": (
        r"method\w*|approach|assumptions?",
        r"statistic\w*|regression|test|model|compare",
        r"missing values|sample|uncertaint\w+|confidence",
    ),
    "insights": (
        r"insights?|findings?|conclusions?|trends?",
        r"recommend\w*|next steps?|explain why|because",
        r"most important|key|top \w+",
    ),
    "visualization": (r"charts?|graphs?|plot|visuali[sz]\w+", r"tables?|diagram|histogram", r"would show|axis|legend"),
    "helpfulness": (r"example|for instance|step", r"practical|how to|explain|why", r"everything asked|answer in"),
    "factuality": (
        r"sources?|cite|reference|evidence",
        r"not certain|uncertain\w*|nothing is made up|facts?|accurate",
        r"date|year|number|\d{3,}",
    ),
    "brevity": (
        r"below \d+ words|at most|no more than|fewer than|less than",
        r"brief\w*|short\w*|concise\w*|one sentence|in the first sentence",
        r"only|just the",
    ),
    "originality": (
        r"original\w*|unique|unusual|surpris\w+",
        r"worn-out|clich|avoid",
        r"twist|unexpected|imagine|weird|zany",
    ),
    "voice": (
        r"\bvoice\b|narrator|first person|point of view",
        r"tone|style|character|dialogue",
        r"feel\w*|emotion\w*|angry|happy|funny",
    ),
    "imagery": (r"image\w*|senses?|vivid|scene", r"metaphor|simile|symbol", r"describ\w+|concrete|colou?r|sound|smell"),
}
_PATTERNS = {name: tuple(re.compile(sign, re.I | re.S) for sign in signs) for name, signs in _EVIDENCE.items()}
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
    """Everything there is to see in a prompt, by name."""
    return dict(zip(NAMES, _seen(prompt), strict=True))


@lru_cache(maxsize=65536)
def _seen(prompt: str) -> tuple[float, ...]:
    general = [_LOOKS[name](prompt) for name in GENERAL]
    found = {
        n: sum(p.search(prompt) is not None for p in patterns) / len(patterns) for n, patterns in _PATTERNS.items()
    }
    return (*general, *(found[name] for name in NAMES[len(GENERAL) :]))


def _clear(prompt: str) -> float:
    """Short sentences, few vague words."""
    spoken = words(prompt)
    if not spoken:
        return 0.0
    mean = len(spoken) / max(1, len(sentences(prompt)))
    vague = sum(word in _VAGUE for word in spoken) / len(spoken)
    return max(0.0, min(1.0, 1.25 - mean / 40.0)) * max(0.0, 1.0 - 10.0 * vague)


def _specific(prompt: str) -> float:
    """Numbers, names, quoted words and binding words, up to six of them."""
    return min(1.0, (len(_DETAIL.findall(prompt)) + len(_BINDING.findall(prompt))) / 6.0)


def _complete(prompt: str) -> float:
    return sum(part.search(prompt) is not None for part in _PARTS) / len(_PARTS)


def _robust(prompt: str) -> float:
    return 1.0 if _WAY_OUT.search(prompt) else 0.0


def _ordered(prompt: str) -> float:
    """List lines and words of order."""
    return min(1.0, (len(list_items(prompt)) + len(_STEPS.findall(prompt))) / 4.0)


def _brief(prompt: str) -> float:
    return math.exp(-tokens(prompt) / 150.0)


_LOOKS: dict[str, Callable[[str], float]] = {
    "clear": _clear,
    "specific": _specific,
    "complete": _complete,
    "robust": _robust,
    "ordered": _ordered,
    "brief": _brief,
}
NAMES = (*GENERAL, *dict.fromkeys(name for names in METRICS.values() for name in names))
"""Every measure, the general ones first."""
