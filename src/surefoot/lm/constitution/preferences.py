"""Which of two responses keeps better to the principles: asked in both orders, with ties, never a default."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from surefoot.lm.constitution.principles import Constitution, ModelJudge
from surefoot.lm.data import PreferencePair

QUESTION = (
    "{principles}\n\nRequest: {prompt}\n\nResponse A: {a}\n\nResponse B: {b}\n\n"
    "Which response keeps better to this, A or B?\nAnswer:"
)


@dataclass(frozen=True, slots=True)
class PairJudgement:
    """What was found about two responses."""

    better: int | None
    """0, 1, or None: cannot tell."""
    p: float
    """That the first is better, over both orders."""
    confidence: float
    agreed: bool
    """Both orders named the same one."""


def compare(
    asking: ModelJudge, constitution: Constitution, prompt: str, one: str, other: str, *, least: float = 0.05
) -> PairJudgement:
    """By log-probs, in both orders: a liking for the letter A cancels out."""
    told = "A good response " + "; it ".join(p.description for p in constitution.active) + "."

    def first(a: str, b: str) -> float:
        return float(asking.chances(QUESTION.format(principles=told, prompt=prompt, a=a, b=b), ("A", "B"))[0])

    forward, backward = first(one, other), 1.0 - first(other, one)
    p = 0.5 * (forward + backward)
    confidence = abs(2 * p - 1)
    agreed = (forward > 0.5) == (backward > 0.5)
    if confidence < least:
        return PairJudgement(None, p, confidence, agreed)
    return PairJudgement(0 if p > 0.5 else 1, p, confidence, agreed)


def by_score(scorer: Callable[[str, str], float]) -> Callable[[str, str, str], PairJudgement]:
    """A comparer out of a scorer, such as rules: surer than a small model, blind to what it has no rule for."""

    def judge(prompt: str, one: str, other: str) -> PairJudgement:
        gap = scorer(prompt, one) - scorer(prompt, other)
        if gap == 0:
            return PairJudgement(None, 0.5, 0.0, True)
        return PairJudgement(0 if gap > 0 else 1, 1.0 if gap > 0 else 0.0, 1.0, True)

    return judge


def pairs_of(
    prompt: str, responses: Sequence[str], judge: Callable[[str, str, str], PairJudgement]
) -> tuple[list[PreferencePair], dict[str, Any]]:
    """(preferences, {asked, ties, disagreed}) out of all pairs of some responses to one prompt."""
    made: list[PreferencePair] = []
    ties = disagreed = asked = 0
    for one, other in itertools.combinations(dict.fromkeys(responses), 2):
        said = judge(prompt, one, other)
        asked += 1
        disagreed += not said.agreed
        if said.better is None:
            ties += 1
            continue
        chosen, rejected = (one, other) if said.better == 0 else (other, one)
        made.append(PreferencePair(prompt, chosen, rejected))
    return made, {"asked": asked, "ties": ties, "disagreed": disagreed}
