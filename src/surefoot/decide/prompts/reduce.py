"""context-reduction: what is said twice, for politeness or at length goes; what is asked stays."""

from __future__ import annotations

import re
from functools import lru_cache

from surefoot.decide.prompts.text import VERBS, capital, sentences
from surefoot.decide.prompts.variation import Impact, PromptVariation, lengths

NAME = "context-reduction"
SHORTEST = 10
"""Characters that are always left."""
WORTH = 0.05
"""Share that must go for the mutation to make sense."""

_AGAIN = re.compile(
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


@lru_cache(maxsize=8192)
def reduced(prompt: str) -> str:
    """The prompt without what can go; the prompt itself where nothing can."""
    kept = [s for s in _lines(prompt) if not _AGAIN.match(s.strip())]
    text = "".join(kept).strip()
    text = _LONG_EXAMPLE.sub("(see examples)", text)
    text = capital(_REQUESTS.sub("", text))
    text = _tidy(_FILLERS.sub("", text))
    if len(text) > 100 and len(text) > 0.9 * len(prompt):
        needed = [s for s in sentences(text) if _ASKS.search(s) or _BINDS.search(s) or len(s) < 30]
        shorter = _tidy(" ".join(needed)) if "\n" not in text else text
        text = shorter if len(shorter) >= SHORTEST else text
    text = capital(text)
    return text if SHORTEST <= len(text) < len(prompt) else prompt


def possible(prompt: str) -> bool:
    """Only where it saves something."""
    return len(reduced(prompt)) <= (1.0 - WORTH) * len(prompt)


def apply(prompt: str) -> PromptVariation:
    """The shorter prompt."""
    text = reduced(prompt)
    percent = 100.0 * (1.0 - len(text) / max(len(prompt), 1))
    return PromptVariation(
        text=text,
        mutation_type=NAME,
        change_description=f"leaves out {percent:.0f} % that asks for nothing",
        expected_impact=Impact(cost="decrease", latency="decrease"),
        metadata={**lengths(prompt, text), "reductionPercent": percent, "targetReductionAchieved": percent >= 30.0},
    )


def _lines(prompt: str) -> list[str]:
    """Sentences with the space behind them, so that line breaks stay where they were."""
    return re.findall(r"[^.!?\n]*(?:[.!?]+(?=\s|$)|\n|$)[ \t]*\n?", prompt)


def _tidy(text: str) -> str:
    text = re.sub(r"[ \t]+", " ", text)
    text = re.sub(r" +([,.;:!?])", r"\1", text)
    return re.sub(r"\n{3,}", "\n\n", text).strip()
