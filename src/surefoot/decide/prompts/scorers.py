"""How good a prompt is: a model whose every term can be read, one that learns from people, and any function of one's own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from surefoot.decide.prompts.classify import BY_CATEGORY, CATEGORIES, METRICS, Category, classify
from surefoot.decide.prompts.measures import GENERAL, NAMES, measures
from surefoot.errors import ConfigError, ShapeError


class Scorer(Protocol):
    """Says how good prompts are, from 0 to 1. The category is that of the prompt before any mutation."""

    def score(self, prompts: Sequence[str], categories: Sequence[Category]) -> np.ndarray:
        """[len(prompts)] float64."""
        ...


@dataclass(frozen=True, slots=True)
class Scored:
    """A score and what it is made of."""

    score: float
    breakdown: dict[str, float]
    """What each measure adds; their sum, at most 1, is the score."""

    @property
    def explanation(self) -> str:
        """The largest terms in words."""
        ranked = sorted(self.breakdown.items(), key=lambda item: -item[1])
        best = ", ".join(f"{name} {x:.2f}" for name, x in ranked[:3] if x > 0.0)
        missing = ", ".join(name for name, x in ranked if x == 0.0)
        return f"mostly {best or 'nothing'}" + (f"; says nothing of {missing}" if missing else "")


OWN_SHARE = 0.5
"""Weight of the category's three metrics; the rest goes to what counts in any prompt."""
FULL = 0.8
"""The weighted mean that counts as 1: brief and complete at once, no prompt is all of it."""
_GENERAL = {category: tuple[float, ...](entry["weights"]) for category, entry in BY_CATEGORY.items()}
"""By category: weights of the measures in GENERAL."""


class FeatureScorer:
    """A weighted mean of what can be seen. Nothing is learned, nothing is hidden, and no prompt is perfect."""

    def score(self, prompts: Sequence[str], categories: Sequence[Category]) -> np.ndarray:
        return np.array([self.explain(p, c).score for p, c in zip(prompts, categories, strict=True)])

    def explain(self, prompt: str, category: Category | None = None) -> Scored:
        """The score with its terms."""
        category = category or classify(prompt).category
        seen = measures(prompt)
        terms = {name: OWN_SHARE * seen[name] / 3.0 / FULL for name in METRICS[category]}
        for name, weight in zip(GENERAL, _GENERAL[category], strict=True):
            terms[name] = terms.get(name, 0.0) + (1.0 - OWN_SHARE) * weight * seen[name] / FULL
        return Scored(min(1.0, sum(terms.values())), terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorerFit:
    """How well a scorer agrees with people on prompts it was not fitted to."""

    mae: float
    rank_correlation: float
    examples: int
    held_out: int


class RidgeScorer:
    """Learns from people's scores what the measures are worth, by category; ridge around the transparent model."""

    def __init__(self, strength: float = 3.0) -> None:
        if not strength > 0.0:
            raise ConfigError(f"strength is {strength}; the ridge must be positive")
        self.strength, self.prior = strength, FeatureScorer()
        self.weights = np.zeros(_columns())
        self.examples = 0

    def score(self, prompts: Sequence[str], categories: Sequence[Category]) -> np.ndarray:
        base = self.prior.score(prompts, categories)
        return np.clip(base + _features(prompts, categories) @ self.weights, 0.0, 1.0)

    def fit(
        self,
        prompts: Sequence[str],
        scores: Sequence[float],
        categories: Sequence[Category] | None = None,
        *,
        held_out: float = 0.25,
        seed: int = 0,
    ) -> ScorerFit:
        """Learn from scores between 0 and 1 (a person's 1 to 5 is `(score - 1) / 4`); tells how it does on the rest."""
        truth = np.asarray(scores, np.float64)
        if len(prompts) != len(truth) or len(truth) < 4:
            raise ShapeError(
                f"{len(prompts)} prompts and {len(truth)} scores; it takes as many of each, and at least 4"
            )
        if not (np.isfinite(truth).all() and (truth >= 0.0).all() and (truth <= 1.0).all()):
            raise ConfigError("scores must lie between 0 and 1; (score - 1) / 4 makes them of 1 to 5")
        kinds: list[Category] = list(categories) if categories else [classify(p).category for p in prompts]
        order = np.random.default_rng(seed).permutation(len(truth))
        apart = order[: max(2, int(held_out * len(truth)))]
        rest = np.setdiff1d(order, apart)
        self.weights = self._solve(prompts, kinds, truth, rest)
        guess = self.score([prompts[int(i)] for i in apart], [kinds[int(i)] for i in apart])
        fit = ScorerFit(
            mae=float(np.abs(guess - truth[apart]).mean()),
            rank_correlation=rank_correlation(guess, truth[apart]),
            examples=len(rest),
            held_out=len(apart),
        )
        self.weights = self._solve(prompts, kinds, truth, order)  # what is kept has seen them all
        self.examples = len(truth)
        return fit

    def _solve(
        self, prompts: Sequence[str], kinds: Sequence[Category], truth: np.ndarray, rows: np.ndarray
    ) -> np.ndarray:
        chosen = [prompts[int(i)] for i in rows]
        categories: list[Category] = [kinds[int(i)] for i in rows]
        x, missing = _features(chosen, categories), truth[rows] - self.prior.score(chosen, categories)
        scale = np.where((spread := x.std(axis=0)) > 1e-9, spread, 1.0)  # what varies little must not weigh little
        x = x / scale
        return np.linalg.solve(x.T @ x + self.strength * np.eye(x.shape[1]), x.T @ missing) / scale

    def save(self, path: Path | str) -> None:
        """As JSON."""
        content = {"format": 1, "names": list(NAMES), "strength": self.strength, "examples": self.examples}
        Path(path).write_text(json.dumps({**content, "weights": self.weights.tolist()}) + "\n")

    @classmethod
    def load(cls, path: Path | str) -> RidgeScorer:
        """What `save` wrote."""
        try:
            content: Any = json.loads(Path(path).read_text())
            weights = np.array(content["weights"], np.float64)
        except (OSError, ValueError, TypeError, KeyError) as why:
            raise ConfigError(f"{path} is not a saved scorer: {why}") from why
        if weights.shape != (_columns(),) or content.get("names") != list(NAMES) or not np.isfinite(weights).all():
            raise ConfigError(f"{path} is the scorer of another version: its measures are not those of this one")
        scorer = cls(float(content["strength"]))
        scorer.weights, scorer.examples = weights, int(content["examples"])
        return scorer


class CallableScorer:
    """Any function of a prompt, or of a prompt and its category, that returns a number from 0 to 1."""

    def __init__(self, function: Callable[..., float], *, with_category: bool = False) -> None:
        self.function, self.with_category = function, with_category

    def score(self, prompts: Sequence[str], categories: Sequence[Category]) -> np.ndarray:
        scores = [
            float(self.function(p, c) if self.with_category else self.function(p))
            for p, c in zip(prompts, categories, strict=True)
        ]
        found = np.array(scores)
        bad = ~(np.isfinite(found) & (found >= 0.0) & (found <= 1.0))
        if bad.any():
            i = int(np.flatnonzero(bad)[0])
            raise ConfigError(f"the scorer gave {found[i]} for {prompts[i][:60]!r}; a score is a number from 0 to 1")
        return found


def _columns() -> int:
    return 1 + len(NAMES) + len(CATEGORIES) * len(GENERAL)


def _features(prompts: Sequence[str], categories: Sequence[Category]) -> np.ndarray:
    """[N, F]: a constant, every measure, and the general ones once more by category."""
    rows = np.zeros((len(prompts), _columns()))
    rows[:, 0] = 1.0
    for row, prompt, category in zip(rows, prompts, categories, strict=True):
        seen: Mapping[str, float] = measures(prompt)
        row[1 : 1 + len(NAMES)] = [seen[name] for name in NAMES]
        first = 1 + len(NAMES) + CATEGORIES.index(category) * len(GENERAL)
        row[first : first + len(GENERAL)] = [seen[name] for name in GENERAL]
    return rows


def rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Spearman's, ties at their mean rank; 0 where one side does not vary."""
    ranks = [_ranks(np.asarray(x, np.float64)) for x in (a, b)]
    if min(float(r.std()) for r in ranks) == 0.0:
        return 0.0
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _ranks(x: np.ndarray) -> np.ndarray:
    _, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2.0)[inverse]
