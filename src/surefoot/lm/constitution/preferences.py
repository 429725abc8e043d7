"""Preferences between two responses by the principles: in both orders, with ties, without a default."""

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
    """The comparison of two responses."""

    better: int | None
    """0 or 1; None for a tie."""
    p: float
    """Probability that the first is better, over both orders."""
    confidence: float
    agreed: bool
    """True if both orders preferred the same one."""


def compare(
    judge: ModelJudge, constitution: Constitution, prompt: str, one: str, other: str, *, least: float = 0.05
) -> PairJudgement:
    """Compare by log-probs in both orders, which cancels a bias for the letter A; below `least` confidence is a tie."""
    rules = "A good response " + "; it ".join(p.description for p in constitution.active) + "."

    def first(a: str, b: str) -> float:
        return float(judge.chances(QUESTION.format(principles=rules, prompt=prompt, a=a, b=b), ("A", "B"))[0])

    forward, backward = first(one, other), 1.0 - first(other, one)
    # A judge that always prefers the first position gets p = 0.5 here, a tie.
    p = 0.5 * (forward + backward)
    confidence = abs(2 * p - 1)
    agreed = (forward > 0.5) == (backward > 0.5)
    if confidence < least:
        return PairJudgement(None, p, confidence, agreed)
    return PairJudgement(0 if p > 0.5 else 1, p, confidence, agreed)


def by_score(scorer: Callable[[str, str], float]) -> Callable[[str, str, str], PairJudgement]:
    """Return a comparison by a scorer, such as rules: surer than a small model, but blind where no rule applies."""

    def judge(prompt: str, one: str, other: str) -> PairJudgement:
        gap = scorer(prompt, one) - scorer(prompt, other)
        if gap == 0:
            return PairJudgement(None, 0.5, 0.0, True)
        return PairJudgement(0 if gap > 0 else 1, 1.0 if gap > 0 else 0.0, 1.0, True)

    return judge


def pairs_of(
    prompt: str, responses: Sequence[str], judge: Callable[[str, str, str], PairJudgement]
) -> tuple[list[PreferencePair], dict[str, Any]]:
    """Return (preferences, {asked, ties, disagreed}) for all pairs of responses to one prompt."""
    pairs: list[PreferencePair] = []
    ties = disagreed = asked = 0
    for one, other in itertools.combinations(dict.fromkeys(responses), 2):
        judgement = judge(prompt, one, other)
        asked += 1
        disagreed += not judgement.agreed
        if judgement.better is None:
            ties += 1
            continue
        chosen, rejected = (one, other) if judgement.better == 0 else (other, one)
        pairs.append(PreferencePair(prompt, chosen, rejected))
    return pairs, {"asked": asked, "ties": ties, "disagreed": disagreed}
