"""Fluency of responses: likelihood under the reference, repetition, refusals, diversity. A score can rise while it is ruined."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

# The phrases in which chat models decline or describe themselves; a policy that falls back on them answers nothing.
_REFUSAL = re.compile(
    r"\b(?:i(?:['’]m| am) (?:sorry|afraid|unable|not able)|i (?:can(?:not|['’]t| not)|won['’]t|will not) "
    r"(?:help|assist|provide|answer|discuss|fulfil|do that|comply)|i must decline)\b"
    r"|\b(?:as an?|i(?:['’]m| am) (?:just |only )?an?) (?:\w+ )?"
    r"(?:ai\b|language model|chatbot|virtual assistant|computer program)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Fluency:
    """Fluency of a set of responses."""

    nll: float
    """Nats per token under the reference."""
    repetition: float
    """Share of 4-grams that occurred before in the same response."""
    refusals: float
    """Share of responses that decline or describe the model itself."""
    diversity: float = 1.0
    """Share of distinct token pairs over all responses: it falls when one phrase is in every response."""

    def beyond(
        self,
        base: Fluency,
        *,
        nll: float | None,
        repetition: float | None,
        refusals: float | None,
        diversity: float | None = None,
    ) -> str:
        """Return which limit is exceeded relative to `base`, as a sentence; empty if none is. `nll` is a share."""
        if nll is not None and self.nll > base.nll * (1.0 + nll):
            return f"the reference NLL per token is {self.nll:.2f}, {self.nll / base.nll - 1:+.0%} (nll_limit={nll:g})"
        for name, limit in (("repetition", repetition), ("refusals", refusals)):
            now, then = getattr(self, name), getattr(base, name)
            if limit is not None and now > then + limit:
                setting = "repetition_limit" if name == "repetition" else "refusal_limit"
                return f"the share of {name} rose from {then:.0%} to {now:.0%} ({setting}={limit:g})"
        if diversity is not None and self.diversity < base.diversity - diversity:
            return (
                f"the share of distinct token pairs over all responses fell from {base.diversity:.0%} to "
                f"{self.diversity:.0%} (diversity_limit={diversity:g})"
            )
        return ""

    def to_json(self) -> dict[str, float]:
        """Return all fields."""
        return asdict(self)


def repeated_grams(tokens: Sequence[int], n: int = 4) -> float:
    """Return the share of n-grams that occurred before in the response; 0 if nothing repeats."""
    grams = [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]
    return 1.0 - len(set(grams)) / len(grams) if grams else 0.0


def distinct(responses: Sequence[Sequence[Any]], n: int = 2) -> float:
    """Return distinct n-grams over all n-grams of all responses; it falls when responses become alike."""
    grams = [tuple(r[i : i + n]) for r in responses for i in range(len(r) - n + 1)]
    return len(set(grams)) / len(grams) if grams else 1.0


def is_refusal(text: str) -> bool:
    """Return True if a response declines or describes the model itself ("As an AI …")."""
    return _REFUSAL.search(text) is not None


def fluency(tokens: Sequence[Sequence[int]], texts: Sequence[str], nll: float) -> Fluency:
    """Return the fluency of responses, given as tokens and as texts; `nll` is their mean per token."""
    count = max(1, len(texts))
    return Fluency(
        nll=nll,
        repetition=sum(map(repeated_grams, tokens)) / count,
        refusals=sum(map(is_refusal, texts)) / count,
        diversity=distinct(tokens),
    )
