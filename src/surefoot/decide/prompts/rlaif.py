"""Learn a scorer from an automatic judge's preferences, with people checking some of them (RLAIF).

Each round the policy mutates prompts, the judge compares both versions, the scorer is fitted to the preferences, and the
policy learns from the scorer. Every `human_every` rounds a person judges some of the same pairs; a person's judgement
replaces the judge's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from surefoot.decide.prompts.improve import Improved
from surefoot.decide.prompts.scorers import RidgeScorer, Scorer
from surefoot.errors import ConfigError

Judge = Callable[[str, str], float]
"""(first, second) → probability that the first version is better; 0.5 means undecided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPair:
    """Two versions of a prompt, with the judgements."""

    before: str
    after: str
    judged: float
    """The judge's probability that `after` is better."""
    human: float | None = None
    """A person's probability, if one judged the pair."""

    @property
    def preference(self) -> float:
        """The person's judgement if there is one, else the judge's."""
        return self.judged if self.human is None else self.human


@dataclass(slots=True, kw_only=True)
class Agreement:
    """Agreement of the judge with people."""

    asked: int = 0
    agreed: int = 0
    corrections: int = 0

    @property
    def share(self) -> float | None:
        """Share of the pairs decided by people on which the judge agrees; None before the first."""
        return self.agreed / self.asked if self.asked else None


@dataclass(slots=True, kw_only=True)
class Rlaif:
    """The pairs collected so far, and the scorer fitted to them.

    Args:
        judge: Compares two versions of a prompt.
        person: Compares two versions too, by asking a person; None: no human checks.
        human_every: Rounds between two human checks; 0 disables them.
        human_pairs: Pairs per human check.
        scorer: Fitted to the preferences.
    """

    judge: Judge
    person: Judge | None = None
    human_every: int = 3
    human_pairs: int = 5
    scorer: RidgeScorer = field(default_factory=lambda: RidgeScorer(strength=1.0))
    pairs: list[PromptPair] = field(default_factory=list[PromptPair])
    agreement: Agreement = field(default_factory=Agreement)
    rounds: int = 0

    def __post_init__(self) -> None:
        if self.human_every < 0 or self.human_pairs < 1:
            raise ConfigError(
                f"human_every is {self.human_every}, human_pairs {self.human_pairs}; they must be at least 0 and 1"
            )

    def round(self, improved: Sequence[Improved]) -> dict[str, Any]:
        """Judge the improved prompts, have people check some if it is due, refit the scorer, and return the round's metrics."""
        self.rounds += 1
        pairs = [
            PromptPair(
                before=each.original,
                after=each.text,
                judged=self._judge(each),
            )
            for each in improved
            if each.changes
        ]
        human = self.person is not None and self.human_every > 0 and self.rounds % self.human_every == 0
        self.pairs += self._check(pairs) if human else pairs
        if self.pairs:
            self.fit()
        preferred = float(np.mean([pair.preference for pair in pairs])) if pairs else 0.5
        return {
            "round": self.rounds,
            "pairs": len(self.pairs),
            "preferred": preferred,
            "judge_agrees": self.agreement.share,
            "human": human,
        }

    def _judge(self, each: Improved) -> float:
        """Return the mean of both orders: a judge that always prefers the first version then counts as undecided."""
        forward, backward = self.judge(each.text, each.original), self.judge(each.original, each.text)
        for probability in (forward, backward):
            if not 0.0 <= probability <= 1.0:
                raise ConfigError(f"the judge returned {probability}; it must be a probability from 0 to 1")
        return 0.5 * (forward + 1.0 - backward)

    def _check(self, pairs: list[PromptPair]) -> list[PromptPair]:
        """Return the pairs with a person's judgement of those the judge is most certain of: errors there are the largest."""
        assert self.person is not None
        certain = sorted(range(len(pairs)), key=lambda i: -abs(pairs[i].judged - 0.5))[: self.human_pairs]
        checked = list(pairs)
        for i in certain:
            pair, human = pairs[i], self.person(pairs[i].after, pairs[i].before)
            checked[i] = replace(pair, human=human)
            if human != 0.5:
                agrees = (human > 0.5) == (pair.judged > 0.5)
                self.agreement.asked += 1
                self.agreement.agreed += agrees
                self.agreement.corrections += not agrees
        return checked

    def fit(self) -> None:
        """Fit the scorer: the preferred version of a pair gets a higher target, in proportion to the preference."""
        base = self.scorer.prior
        texts, scores = list[str](), list[float]()
        for pair in self.pairs:
            low, high = base.score([pair.before, pair.after], [pair.before, pair.before])
            # A certain preference moves the two targets 0.2 apart, within the range that mutations change scores by.
            middle, half = 0.5 * (low + high), 0.2 * (pair.preference - 0.5)
            # People check few pairs; without the weight of five their corrections would vanish among the judge's.
            for _ in range(1 if pair.human is None else 5):
                texts += [pair.before, pair.after]
                scores += [float(np.clip(middle - half, 0.0, 1.0)), float(np.clip(middle + half, 0.0, 1.0))]
        if len(texts) >= 4:
            self.scorer.fit(texts, scores)


def judge_by(scorer: Scorer, sharpness: float = 20.0) -> Judge:
    """Return a judge that prefers the higher score: sigmoid(sharpness · difference)."""

    def judge(first: str, second: str) -> float:
        # The shorter version is usually the original.
        original = min(first, second, key=len)
        a, b = scorer.score([first, second], [original, original])
        return float(1.0 / (1.0 + np.exp(-sharpness * (a - b))))

    return judge
