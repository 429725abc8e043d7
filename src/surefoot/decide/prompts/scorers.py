"""Prompt scorers: a transparent weighted sum, a ridge model fitted to human scores, and any Python function."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from surefoot.decide.prompts.classify import BY_CATEGORY, CATEGORIES, METRICS, Category, classify
from surefoot.decide.prompts.measures import GENERAL, NAMES, measures
from surefoot.errors import ConfigError, ShapeError


class Scorer(Protocol):
    """Scores prompts from 0 to 1. The category is that of the prompt before any mutation."""

    def score(self, prompts: Sequence[str], categories: Sequence[Category]) -> np.ndarray:
        """Return [len(prompts)] float64."""
        ...


@dataclass(frozen=True, slots=True)
class Scored:
    """A score and its terms."""

    score: float
    breakdown: dict[str, float]
    """Contribution of each measure; the score is their sum, at most 1."""

    @property
    def explanation(self) -> str:
        """The largest terms and the missing ones, as a sentence."""
        ranked = sorted(self.breakdown.items(), key=lambda item: -item[1])
        best = ", ".join(f"{name} {x:.2f}" for name, x in ranked[:3] if x > 0.0)
        missing = ", ".join(name for name, x in ranked if x == 0.0)
        return f"mostly {best or 'nothing'}" + (f"; nothing about {missing}" if missing else "")


# Weight of the category's three metrics; the six general measures share the other half.
CATEGORY_SHARE = 0.5
# The weighted mean that counts as 1: no prompt is both brief and complete, so a mean of 1 cannot be reached.
FULL = 0.8
_GENERAL = {category: tuple[float, ...](entry["weights"]) for category, entry in BY_CATEGORY.items()}
"""Weights of the measures in GENERAL, by category."""


class FeatureScorer:
    """Weighted mean of the measures. Nothing is learned; `explain` returns every term."""

    def score(self, prompts: Sequence[str], categories: Sequence[Category]) -> np.ndarray:
        return np.array([self.explain(p, c).score for p, c in zip(prompts, categories, strict=True)])

    def explain(self, prompt: str, category: Category | None = None) -> Scored:
        """Return the score with its terms; `category` defaults to the prompt's."""
        category = category or classify(prompt).category
        values = measures(prompt)
        terms = {name: CATEGORY_SHARE * values[name] / 3.0 / FULL for name in METRICS[category]}
        for name, weight in zip(GENERAL, _GENERAL[category], strict=True):
            terms[name] = terms.get(name, 0.0) + (1.0 - CATEGORY_SHARE) * weight * values[name] / FULL
        return Scored(min(1.0, sum(terms.values())), terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorerFit:
    """Agreement of a scorer with human scores on held-out prompts."""

    mae: float
    rank_correlation: float
    examples: int
    held_out: int


class RidgeScorer:
    """Ridge regression on the difference between human scores and the `FeatureScorer`.

    Args:
        strength: L2 penalty; larger values stay closer to the `FeatureScorer`.
    """

    def __init__(self, strength: float = 3.0) -> None:
        if not strength > 0.0:
            raise ConfigError(f"strength is {strength}; it must be above 0")
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
        """Fit to human scores and return the agreement on held-out prompts; the final weights use all prompts.

        Args:
            prompts: At least 4.
            scores: One per prompt, 0 to 1; convert 1 to 5 with `(score - 1) / 4`.
            categories: One per prompt; default: classified.
            held_out: Share of the prompts for the reported agreement.
            seed: Selects the held-out prompts.
        """
        target = np.asarray(scores, np.float64)
        if len(prompts) != len(target) or len(target) < 4:
            raise ShapeError(f"{len(prompts)} prompts and {len(target)} scores; pass one score per prompt, at least 4")
        if not (np.isfinite(target).all() and (target >= 0.0).all() and (target <= 1.0).all()):
            raise ConfigError("scores must be between 0 and 1; convert 1 to 5 with (score - 1) / 4")
        kinds: list[Category] = list(categories) if categories else [classify(p).category for p in prompts]
        # Split at random: files are often sorted by score or category.
        order = np.random.default_rng(seed).permutation(len(target))
        test = order[: max(2, int(held_out * len(target)))]
        train = np.setdiff1d(order, test)
        self.weights = self._solve(prompts, kinds, target, train)
        predicted = self.score([prompts[int(i)] for i in test], [kinds[int(i)] for i in test])
        fit = ScorerFit(
            mae=float(np.abs(predicted - target[test]).mean()),
            rank_correlation=rank_correlation(predicted, target[test]),
            examples=len(train),
            held_out=len(test),
        )
        self.weights = self._solve(prompts, kinds, target, order)
        self.examples = len(target)
        return fit

    def _solve(
        self, prompts: Sequence[str], kinds: Sequence[Category], target: np.ndarray, rows: np.ndarray
    ) -> np.ndarray:
        chosen = [prompts[int(i)] for i in rows]
        categories: list[Category] = [kinds[int(i)] for i in rows]
        x, residual = _features(chosen, categories), target[rows] - self.prior.score(chosen, categories)
        # Standardized: otherwise the penalty would suppress features that vary little.
        scale = np.where((spread := x.std(axis=0)) > 1e-9, spread, 1.0)
        x = x / scale
        return np.linalg.solve(x.T @ x + self.strength * np.eye(x.shape[1]), x.T @ residual) / scale

    def save(self, path: Path | str) -> None:
        """Write the scorer as JSON."""
        content = {"format": 1, "names": list(NAMES), "strength": self.strength, "examples": self.examples}
        Path(path).write_text(json.dumps({**content, "weights": self.weights.tolist()}) + "\n")

    @classmethod
    def load(cls, path: Path | str) -> RidgeScorer:
        """Read a scorer that `save` wrote."""
        try:
            content: Any = json.loads(Path(path).read_text())
            weights = np.array(content["weights"], np.float64)
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise ConfigError(f"{path} is not a saved scorer: {error}") from error
        if weights.shape != (_columns(),) or content.get("names") != list(NAMES) or not np.isfinite(weights).all():
            raise ConfigError(f"{path} was saved by another version, with other measures; fit the scorer again")
        scorer = cls(float(content["strength"]))
        scorer.weights, scorer.examples = weights, int(content["examples"])
        return scorer


class CallableScorer:
    """Scorer from a function.

    Args:
        function: Takes a prompt (and its category) and returns a number from 0 to 1.
        with_category: Pass the category as second argument.
    """

    def __init__(self, function: Callable[..., float], *, with_category: bool = False) -> None:
        self.function, self.with_category = function, with_category

    def score(self, prompts: Sequence[str], categories: Sequence[Category]) -> np.ndarray:
        scores = [
            float(self.function(p, c) if self.with_category else self.function(p))
            for p, c in zip(prompts, categories, strict=True)
        ]
        result = np.array(scores)
        bad = ~(np.isfinite(result) & (result >= 0.0) & (result <= 1.0))
        if bad.any():
            i = int(np.flatnonzero(bad)[0])
            raise ConfigError(
                f"the scorer returned {result[i]} for {prompts[i][:60]!r}; a score must be between 0 and 1"
            )
        return result


def _columns() -> int:
    return 1 + len(NAMES) + len(CATEGORIES) * len(GENERAL)


def _features(prompts: Sequence[str], categories: Sequence[Category]) -> np.ndarray:
    """Return [N, F]: a constant, every measure, and the general measures again in the columns of the category."""
    rows = np.zeros((len(prompts), _columns()))
    rows[:, 0] = 1.0
    for row, prompt, category in zip(rows, prompts, categories, strict=True):
        values = measures(prompt)
        row[1 : 1 + len(NAMES)] = [values[name] for name in NAMES]
        first = 1 + len(NAMES) + CATEGORIES.index(category) * len(GENERAL)
        row[first : first + len(GENERAL)] = [values[name] for name in GENERAL]
    return rows


def rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Return Spearman's rank correlation, ties at their mean rank; 0 if one side is constant."""
    ranks = list[np.ndarray]()
    for x in (a, b):
        _, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
        ranks.append((np.cumsum(counts) - (counts - 1) / 2.0)[inverse])
    if min(float(r.std()) for r in ranks) == 0.0:
        return 0.0
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])
