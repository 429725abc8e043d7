"""Which of seven kinds a prompt is, by words that speak for each; English and Arabic."""

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
"""Metrics, weights, signs and constraints of each category."""
METRICS = {category: tuple[str, ...](entry["metrics"]) for category, entry in BY_CATEGORY.items()}
"""What a good prompt of a category says something about."""
_PATTERNS = {
    category: tuple(re.compile(sign, re.IGNORECASE | re.MULTILINE | re.DOTALL) for sign in entry["signs"])
    for category, entry in BY_CATEGORY.items()
}
_TRAITS = {name: re.compile(pattern) for name, pattern in _SHIPPED["traits"].items()}


@dataclass(frozen=True, slots=True)
class Classified:
    """What a prompt was taken for."""

    category: Category
    confidence: float
    """0.25 where nothing speaks for any category, up to 0.95."""
    characteristics: tuple[str, ...]


@lru_cache(maxsize=8192)
def classify(prompt: str) -> Classified:
    """The category that most signs speak for; GENERAL_QA where none does."""
    hits = {c: sum(p.search(prompt) is not None for p in patterns) for c, patterns in _PATTERNS.items()}
    best = max(CATEGORIES, key=lambda c: hits[c])
    traits = tuple(name for name, pattern in _TRAITS.items() if pattern.search(prompt))
    if hits[best] == 0:
        return Classified("GENERAL_QA", 0.25, traits)
    return Classified(best, min(0.35 + 0.2 * hits[best], 0.95), traits)
