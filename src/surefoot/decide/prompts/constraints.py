"""Instructions that code can check in a response: how many words, which words, which form. The kinds are IFEval's."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.decide.prompts.classify import Category
from surefoot.decide.prompts.text import sentences
from surefoot.errors import ConfigError

Check = Callable[[str, Mapping[str, Any]], bool]


@dataclass(frozen=True, slots=True)
class Constraint:
    """One thing a response must be."""

    kind: str
    """Such as "length_constraints:number_words"."""
    given: Mapping[str, Any]
    """Its numbers and words."""

    def __post_init__(self) -> None:
        if self.kind not in CHECKS:
            raise ConfigError(f"there is no constraint {self.kind!r}; there are {', '.join(sorted(CHECKS))}")

    def met_by(self, response: str) -> bool:
        """Whether the response is what was asked for; an empty one never is."""
        return bool(response.strip()) and CHECKS[self.kind](response, self.given)


def share_met(response: str, constraints: Sequence[Constraint]) -> float:
    """Of the constraints, those that the response meets; 1 where there are none."""
    return sum(c.met_by(response) for c in constraints) / len(constraints) if constraints else 1.0


def readable(kinds: Sequence[str], given: Sequence[Mapping[str, Any]]) -> list[Constraint]:
    """The constraints of a data set's row that code can check here; those of a language are left out."""
    return [
        Constraint(kind, {k: v for k, v in g.items() if v is not None})
        for kind, g in zip(kinds, given, strict=True)
        if kind in CHECKS
    ]


class ConstraintScorer:
    """A prompt is as good as the response it gets: the share of its constraints that somebody's answer meets.

    `respond` is whatever answers prompts: a language model, an API. `constraints` has those of each original prompt;
    a mutated one is found by the longest original that it contains, or by what `remember` was told.
    """

    def __init__(self, respond: Callable[[str], str], constraints: Mapping[str, Sequence[Constraint]]) -> None:
        self.respond, self.constraints = respond, dict(constraints)

    def remember(self, original: str, mutated: str) -> None:
        """A mutation of a prompt is held to the same constraints."""
        if original in self.constraints:
            self.constraints[mutated] = self.constraints[original]

    def score(self, prompts: Sequence[str], categories: Sequence[Category]) -> np.ndarray:
        return np.array([share_met(self.respond(prompt), self._of(prompt)) for prompt in prompts])

    def _of(self, prompt: str) -> Sequence[Constraint]:
        if prompt in self.constraints:
            return self.constraints[prompt]
        inside = [known for known in self.constraints if known in prompt]
        if not inside:
            raise ConfigError(
                f"nothing is known of {prompt[:60]!r}; give its constraints, or remember(original, mutated)"
            )
        return self.constraints[max(inside, key=len)]


def _compare(count: int, relation: Any, wanted: Any) -> bool:
    return count < int(wanted) if relation == "less than" else count >= int(wanted)


def _word_count(text: str, word: str) -> int:
    return len(re.findall(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE))


def _json(text: str, given: Mapping[str, Any]) -> bool:
    inner = re.sub(r"^```(?:json)?\s*|\s*```$", "", text.strip(), flags=re.IGNORECASE)
    try:
        json.loads(inner)
    except (ValueError, RecursionError):
        return False
    return True


def _paragraphs(text: str, split: str) -> list[str]:
    return [part for part in (p.strip() for p in re.split(split, text)) if part]


def _first_word(text: str, given: Mapping[str, Any]) -> bool:
    parts = _paragraphs(text, r"\n\s*\n")
    nth = int(given["nth_paragraph"])
    if len(parts) != int(given["num_paragraphs"]) or not 1 <= nth <= len(parts):
        return False
    match = re.match(r"\W*(\w+)", parts[nth - 1])
    return match is not None and match[1].lower() == str(given["first_word"]).lower()


def _two_responses(text: str, given: Mapping[str, Any]) -> bool:
    parts = [part.strip() for part in text.split("******")]
    full = [part for part in parts if part]
    return len(full) == 2 and full[0] != full[1]


def _capital_words(text: str, given: Mapping[str, Any]) -> bool:
    count = sum(word.isupper() and len(word) > 1 for word in re.findall(r"[^\W\d_]+", text))
    return _compare(count, given.get("capital_relation"), given["capital_frequency"])


CHECKS: dict[str, Check] = {
    "keywords:existence": lambda t, g: all(_word_count(t, str(w)) for w in g["keywords"]),
    "keywords:frequency": lambda t, g: _compare(_word_count(t, str(g["keyword"])), g.get("relation"), g["frequency"]),
    "keywords:forbidden_words": lambda t, g: not any(_word_count(t, str(w)) for w in g["forbidden_words"]),
    "keywords:letter_frequency": lambda t, g: _compare(
        t.lower().count(str(g["letter"]).lower()), g.get("let_relation"), g["let_frequency"]
    ),
    "length_constraints:number_words": lambda t, g: _compare(
        len(re.findall(r"\w+", t)), g.get("relation"), g["num_words"]
    ),
    "length_constraints:number_sentences": lambda t, g: _compare(
        len(sentences(t)), g.get("relation"), g["num_sentences"]
    ),
    "length_constraints:number_paragraphs": lambda t, g: (
        len(_paragraphs(t, r"\s?\*\*\*\s?")) == int(g["num_paragraphs"])
    ),
    "length_constraints:nth_paragraph_first_word": _first_word,
    "detectable_content:postscript": lambda t, g: str(g["postscript_marker"]).lower() in t.lower(),
    "detectable_content:number_placeholders": lambda t, g: (
        len(re.findall(r"\[[^\[\]]+\]", t)) >= int(g["num_placeholders"])
    ),
    "detectable_format:number_bullet_lists": lambda t, g: (
        len(re.findall(r"^\s*[*-]\s+\S", t, re.M)) == int(g["num_bullets"])
    ),
    "detectable_format:constrained_response": lambda t, g: any(
        answer in t for answer in ("My answer is yes.", "My answer is no.", "My answer is maybe.")
    ),
    "detectable_format:number_highlighted_sections": lambda t, g: (
        len(re.findall(r"\*[^\n*]+\*", t)) >= int(g["num_highlights"])
    ),
    "detectable_format:multiple_sections": lambda t, g: (
        len(re.findall(rf"^\s*{re.escape(str(g['section_spliter']))}\s*\d+", t, re.M)) >= int(g["num_sections"])
    ),
    "detectable_format:json_format": _json,
    "detectable_format:title": lambda t, g: re.search(r"<<[^\n<>]*\S[^\n<>]*>>", t) is not None,
    "combination:two_responses": _two_responses,
    "combination:repeat_prompt": lambda t, g: t.strip().lower().startswith(str(g["prompt_to_repeat"]).strip().lower()),
    "startend:end_checker": lambda t, g: t.strip().strip('"').lower().endswith(str(g["end_phrase"]).strip().lower()),
    "startend:quotation": lambda t, g: len(t.strip()) > 1 and t.strip()[0] == '"' and t.strip()[-1] == '"',
    "change_case:capital_word_frequency": _capital_words,
    "change_case:english_capital": lambda t, g: t.isupper(),
    "change_case:english_lowercase": lambda t, g: t.islower(),
    "punctuation:no_comma": lambda t, g: "," not in t,
}
"""By kind. The language of a response is not among them: that takes a model."""
