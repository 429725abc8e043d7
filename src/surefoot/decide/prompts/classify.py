"""Which of seven kinds a prompt is, by words that speak for each; English and Arabic."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

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

METRICS: dict[Category, tuple[str, str, str]] = {
    "CODE_GENERATION": ("correctness", "types", "tests"),
    "CODE_REVIEW": ("security", "performance", "readability"),
    "CONTENT_WRITING": ("clarity", "structure", "tone"),
    "MARKETING_COPY": ("cta", "benefits", "conversion"),
    "DATA_ANALYSIS": ("methodology", "insights", "visualization"),
    "GENERAL_QA": ("helpfulness", "factuality", "brevity"),
    "CREATIVE_WRITING": ("originality", "voice", "imagery"),
}
"""What a good prompt of a category says something about."""

_SIGNS: dict[Category, tuple[str, ...]] = {
    "CODE_GENERATION": (
        r"\b(?:write|create|implement|build|develop|code)\b.{0,60}\b(?:function|class|program|script|api|app|code|query)\b",
        r"\b(?:python|javascript|typescript|java|c\+\+|sql|rust|golang|html|css|react|regex|bash)\b",
        r"\b(?:algorithm|endpoint|database|compiler|unit tests?|data structure|recursi\w+)\b",
        r"دالة|برمج|كود|خوارزمية",
    ),
    "CODE_REVIEW": (
        r"\b(?:review|debug|fix|refactor|audit|optimi[sz]e)\b.{0,40}\b(?:code|function|bug|program|script|query|class)\b",
        r"\b(?:code review|vulnerabilit\w+|code smells?|stack trace|pull request|bug)\b",
        r"مراجعة الكود|إصلاح|تصحيح",
    ),
    "CONTENT_WRITING": (
        r"\b(?:write|draft|compose|create|rewrite|edit)\b.{0,60}\b(?:article|blog|essay|post|report|email|letter|summary|"
        r"resume|cover letter|paragraph|outline|speech|itinerary)\b",
        r"\b(?:summari[sz]e|proofread|paraphrase|rephrase|grammar|tone)\b",
        r"مقال|تدوينة|تقرير|رسالة",
    ),
    "MARKETING_COPY": (
        r"\b(?:advert\w*|ad copy|slogan|tagline|landing page|marketing|campaign|newsletter|promot\w+|sales page)\b",
        r"\b(?:brand|customers?|product description|call to action|instagram|facebook|tweet|pitch)\b",
        r"إعلان|تسويق|شعار|حملة",
    ),
    "DATA_ANALYSIS": (
        r"\b(?:analy[sz]e|analysis|compare|correlat\w+|forecast|regression|statistic\w*|trend)\b.{0,60}"
        r"\b(?:data|dataset|sales|survey|table|csv|spreadsheet|results|metrics)\b",
        r"\b(?:dataset|csv|spreadsheet|excel|chart|graph|average|median|histogram|pivot|sql query)\b",
        r"\b(?:classify|classification|entailment|sentiment|label the)\b",
        r"تحليل|بيانات|إحصاء",
    ),
    "GENERAL_QA": (
        r"^(?:what|who|when|where|why|how|which|is|are|does|do|can)\b",
        r"\?\s*$",
        r"\b(?:explain|define|difference between|answer the (?:following )?question|tell me about)\b",
        r"ما هو|ما هي|كيف|لماذا|اشرح",
    ),
    "CREATIVE_WRITING": (
        r"\b(?:story|poem|haiku|limerick|song|lyrics|novel|fiction|screenplay|rap|riddle|joke|fairy tale|dialogue)\b",
        r"\b(?:imagine|pretend|creative|character|once upon|role-?play|metaphor)\b",
        r"قصة|قصيدة|رواية|شعر",
    ),
}
_PATTERNS = {
    category: tuple(re.compile(sign, re.IGNORECASE | re.MULTILINE | re.DOTALL) for sign in signs)
    for category, signs in _SIGNS.items()
}
_TRAITS = {
    "asks-a-question": re.compile(r"\?"),
    "has-constraints": re.compile(
        r"\b(?:must|should|at least|at most|no more than|only|exactly|do not|don't|without)\b", re.I
    ),
    "has-examples": re.compile(r"\b(?:e\.g\.|for example|for instance|such as|example:)", re.I),
    "has-code": re.compile(r"```|\bdef |\bfunction\b|[{};]\s*$", re.M),
    "has-placeholders": re.compile(r"\{[a-z_ ]+\}|\[[A-Z_ ]+\]"),
    "is-a-list": re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s", re.M),
}


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
    hits = {c: sum(len(p.findall(prompt)) > 0 for p in patterns) for c, patterns in _PATTERNS.items()}
    best = max(CATEGORIES, key=lambda c: hits[c])
    traits = tuple(name for name, pattern in _TRAITS.items() if pattern.search(prompt))
    if hits[best] == 0:
        return Classified("GENERAL_QA", 0.25, traits)
    return Classified(best, min(0.35 + 0.2 * hits[best], 0.95), traits)
