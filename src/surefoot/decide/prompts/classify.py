"""Classify a prompt into one of seven categories by keyword patterns, in English and Arabic."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, get_args

from surefoot.data.shipped_yaml import read_shipped

Category = Literal[
    "CODE_GENERATION",
    "CODE_REVIEW",
    "CONTENT_WRITING",
    "MARKETING_COPY",
    "DATA_ANALYSIS",
    "GENERAL_QA",
    "CREATIVE_WRITING",
]
CATEGORIES: tuple[Category, ...] = get_args(Category)

_SHIPPED = read_shipped("surefoot.decide.prompts", "categories.yaml")
BY_CATEGORY: dict[Category, dict[str, Any]] = _SHIPPED["categories"]
"""Metrics, weights and signs of each category."""
METRICS = {category: tuple[str, ...](entry["metrics"]) for category, entry in BY_CATEGORY.items()}
"""Metrics that a good prompt of a category addresses."""
_PATTERNS = {
    category: tuple(re.compile(sign, re.IGNORECASE | re.MULTILINE | re.DOTALL) for sign in entry["signs"])
    for category, entry in BY_CATEGORY.items()
}
_TRAITS = {name: re.compile(pattern) for name, pattern in _SHIPPED["traits"].items()}


@dataclass(frozen=True, slots=True)
class Classified:
    """Category of a prompt."""

    category: Category
    confidence: float
    """From 0.25 if no pattern matches, to 0.95."""
    characteristics: tuple[str, ...]


@lru_cache(maxsize=8192)
def classify(prompt: str) -> Classified:
    """Return the category with the most matching patterns, or GENERAL_QA if none matches."""
    hits = {c: sum(p.search(prompt) is not None for p in patterns) for c, patterns in _PATTERNS.items()}
    best = max(CATEGORIES, key=lambda c: hits[c])
    traits = tuple(name for name, pattern in _TRAITS.items() if pattern.search(prompt))
    if hits[best] == 0:
        return Classified("GENERAL_QA", 0.25, traits)
    # 0.55 for one match, saturating with the third: a hand-set scale, not a calibrated probability.
    return Classified(best, min(0.35 + 0.2 * hits[best], 0.95), traits)
