"""Learning from a judge that is no person, with people looking over its shoulder every few rounds.

Each round: the policy mutates prompts, the judge says which of two versions is better, the scorer is fitted to what was
said, the policy learns from the scorer. Every `human_every` rounds people are asked about some of the same pairs; where
they disagree with the judge, their word replaces its.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from surefoot.decide.prompts.classify import Category, classify
from surefoot.decide.prompts.improve import Improved
from surefoot.decide.prompts.scorers import RidgeScorer, Scorer
from surefoot.errors import ConfigError

Judge = Callable[[str, str], float]
"""(one version, another) → how likely the first one is the better: 0 to 1, 0.5 for "cannot tell"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPair:
    """Two versions of a prompt and the judgements of them."""

    before: str
    after: str
    category: Category
    judged: float
    """How likely `after` is better, by the judge."""
    human: float | None = None
    """The same by a person, where one was asked."""

    @property
    def preference(self) -> float:
        """A person's word, else the judge's."""
        return self.judged if self.human is None else self.human


@dataclass(slots=True, kw_only=True)
class Agreement:
    """How the judge compares with people."""

    asked: int = 0
    agreed: int = 0
    corrections: int = 0

    @property
    def share(self) -> float | None:
        """Of the pairs people decided, those the judge decided the same way."""
        return self.agreed / self.asked if self.asked else None


@dataclass(slots=True, kw_only=True)
class Rlaif:
    """The pairs so far, and the scorer that they made."""

    judge: Judge
    person: Judge | None = None
    human_every: int = 3
    """Rounds from one look of a person to the next; 0 asks nobody."""
    human_pairs: int = 5
    scorer: RidgeScorer = field(default_factory=lambda: RidgeScorer(strength=1.0))
    pairs: list[PromptPair] = field(default_factory=list[PromptPair])
    agreement: Agreement = field(default_factory=Agreement)
    rounds: int = 0

    def __post_init__(self) -> None:
        if self.human_every < 0 or self.human_pairs < 1:
            raise ConfigError(f"human_every is {self.human_every} and human_pairs {self.human_pairs}; at least 0 and 1")

    def round(self, improved: Sequence[Improved]) -> dict[str, Any]:
        """Judge what a policy made of some prompts, ask people if it is their turn, and fit the scorer to all of it."""
        self.rounds += 1
        fresh = [
            PromptPair(
                before=each.original,
                after=each.text,
                category=classify(each.original).category,
                judged=self._judged(each),
            )
            for each in improved
            if each.changes
        ]
        human = self.person is not None and self.human_every > 0 and self.rounds % self.human_every == 0
        self.pairs += self._ask(fresh) if human else fresh
        if self.pairs:
            self.fit()
        liked = float(np.mean([pair.preference for pair in fresh])) if fresh else 0.5
        share = self.agreement.share
        return {
            "round": self.rounds,
            "pairs": len(self.pairs),
            "preferred": liked,
            "judge_agrees": share,
            "human": human,
        }

    def _judged(self, each: Improved) -> float:
        """Both orders are asked, so that a judge who always prefers the first says nothing."""
        forth, back = self.judge(each.text, each.original), self.judge(each.original, each.text)
        for probability in (forth, back):
            if not 0.0 <= probability <= 1.0:
                raise ConfigError(f"the judge said {probability}; it must be a probability, 0 to 1")
        return 0.5 * (forth + 1.0 - back)

    def _ask(self, fresh: list[PromptPair]) -> list[PromptPair]:
        """People see the pairs the judge is most sure of: a correction there teaches most."""
        assert self.person is not None
        sure = sorted(range(len(fresh)), key=lambda i: -abs(fresh[i].judged - 0.5))[: self.human_pairs]
        answered = list(fresh)
        for i in sure:
            pair, human = fresh[i], self.person(fresh[i].after, fresh[i].before)
            answered[i] = PromptPair(
                before=pair.before, after=pair.after, category=pair.category, judged=pair.judged, human=human
            )
            if human != 0.5:
                agrees = (human > 0.5) == (pair.judged > 0.5)
                self.agreement.asked += 1
                self.agreement.agreed += agrees
                self.agreement.corrections += not agrees
        return answered

    def fit(self) -> None:
        """Fit the scorer to the judgements: the better version of a pair higher, by as much as it was preferred."""
        base = self.scorer.prior
        texts, scores, kinds = list[str](), list[float](), list[Category]()
        for pair in self.pairs:
            both: list[Category] = [pair.category, pair.category]
            low, high = base.score([pair.before, pair.after], both)
            middle, half = 0.5 * (low + high), 0.2 * (pair.preference - 0.5)
            # A person's word counts as much as five of the judge's.
            for _ in range(1 if pair.human is None else 5):
                texts += [pair.before, pair.after]
                scores += [float(np.clip(middle - half, 0.0, 1.0)), float(np.clip(middle + half, 0.0, 1.0))]
                kinds += both
        if len(texts) >= 4:
            self.scorer.fit(texts, scores, kinds)


def judge_by(scorer: Scorer, sharpness: float = 20.0) -> Judge:
    """A judge that prefers what a scorer scores higher."""

    def judge(one: str, other: str) -> float:
        kind = classify(min(one, other, key=len)).category
        a, b = scorer.score([one, other], [kind, kind])
        return float(1.0 / (1.0 + np.exp(-sharpness * (a - b))))

    return judge
