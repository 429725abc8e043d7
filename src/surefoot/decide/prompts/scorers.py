"""Prompt scorers: the lint, a ridge model fitted to human scores, and any Python function."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from surefoot.decide.prompts.lint import TERMS, lint
from surefoot.decide.prompts.structure import structure
from surefoot.decide.prompts.text import list_items, sentences, tokens
from surefoot.errors import ConfigError, ShapeError


class Scorer(Protocol):
    """Scores versions of prompts; more is better."""

    def score(self, prompts: Sequence[str], originals: Sequence[str]) -> np.ndarray:
        """Return [len(prompts)] float64; `originals` are the prompts before any mutation."""
        ...


class LintScorer:
    """The lint's score, from 0 to 1. Nothing is learned; `lint` returns the reasons."""

    def score(self, prompts: Sequence[str], originals: Sequence[str]) -> np.ndarray:
        return np.array([lint(prompt).score for prompt in prompts])


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorerFit:
    """Agreement of a scorer with human scores on held-out prompts."""

    mae: float
    rank_correlation: float
    examples: int
    held_out: int


class RidgeScorer:
    """Ridge regression on the difference between human scores and the lint.

    Args:
        strength: L2 penalty; larger values stay closer to the lint.
    """

    def __init__(self, strength: float = 3.0) -> None:
        if not strength > 0.0:
            raise ConfigError(f"strength is {strength}; it must be above 0")
        self.strength, self.prior = strength, LintScorer()
        self.weights = np.zeros(len(FEATURES))
        self.examples = 0

    def score(self, prompts: Sequence[str], originals: Sequence[str]) -> np.ndarray:
        return np.clip(self.prior.score(prompts, originals) + _features(prompts) @ self.weights, 0.0, 1.0)

    def fit(
        self,
        prompts: Sequence[str],
        scores: Sequence[float],
        *,
        held_out: float = 0.25,
        seed: int = 0,
    ) -> ScorerFit:
        """Fit to human scores and return the agreement on held-out prompts; the final weights use all prompts.

        Args:
            prompts: At least 4.
            scores: One per prompt, 0 to 1; convert 1 to 5 with `(score - 1) / 4`.
            held_out: Share of the prompts for the reported agreement.
            seed: Selects the held-out prompts.
        """
        target = np.asarray(scores, np.float64)
        if len(prompts) != len(target) or len(target) < 4:
            raise ShapeError(f"{len(prompts)} prompts and {len(target)} scores; pass one score per prompt, at least 4")
        if not (np.isfinite(target).all() and (target >= 0.0).all() and (target <= 1.0).all()):
            raise ConfigError("scores must be between 0 and 1; convert 1 to 5 with (score - 1) / 4")
        # Split at random: files are often sorted by score or category.
        order = np.random.default_rng(seed).permutation(len(target))
        test = order[: max(2, int(held_out * len(target)))]
        train = np.setdiff1d(order, test)
        self.weights = self._solve(prompts, target, train)
        held = [prompts[int(i)] for i in test]
        predicted = self.score(held, held)
        fit = ScorerFit(
            mae=float(np.abs(predicted - target[test]).mean()),
            rank_correlation=rank_correlation(predicted, target[test]),
            examples=len(train),
            held_out=len(test),
        )
        self.weights = self._solve(prompts, target, order)
        self.examples = len(target)
        return fit

    def _solve(self, prompts: Sequence[str], target: np.ndarray, rows: np.ndarray) -> np.ndarray:
        chosen = [prompts[int(i)] for i in rows]
        x, residual = _features(chosen), target[rows] - self.prior.score(chosen, chosen)
        # Standardized: otherwise the penalty would suppress features that vary little.
        scale = np.where((spread := x.std(axis=0)) > 1e-9, spread, 1.0)
        x = x / scale
        return np.linalg.solve(x.T @ x + self.strength * np.eye(x.shape[1]), x.T @ residual) / scale

    def save(self, path: Path | str) -> None:
        content = {"format": 1, "names": list(FEATURES), "strength": self.strength, "examples": self.examples}
        Path(path).write_text(json.dumps({**content, "weights": self.weights.tolist()}) + "\n")

    @classmethod
    def load(cls, path: Path | str) -> RidgeScorer:
        """Read a scorer that `save` wrote."""
        try:
            content: Any = json.loads(Path(path).read_text())
            weights = np.array(content["weights"], np.float64)
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise ConfigError(f"{path} is not a saved scorer: {error}") from error
        if (
            weights.shape != (len(FEATURES),)
            or content.get("names") != list(FEATURES)
            or not np.isfinite(weights).all()
        ):
            raise ConfigError(f"{path} was saved by another version, with other measures; fit the scorer again")
        scorer = cls(float(content["strength"]))
        scorer.weights, scorer.examples = weights, int(content["examples"])
        return scorer


class CallableScorer:
    """Scorer from a function.

    Args:
        function: Takes a prompt and returns a number from 0 to 1.
    """

    def __init__(self, function: Callable[[str], float]) -> None:
        self.function = function

    def score(self, prompts: Sequence[str], originals: Sequence[str]) -> np.ndarray:
        result = np.array([float(self.function(prompt)) for prompt in prompts])
        bad = ~(np.isfinite(result) & (result >= 0.0) & (result <= 1.0))
        if bad.any():
            i = int(np.flatnonzero(bad)[0])
            raise ConfigError(
                f"the scorer returned {result[i]} for {prompts[i][:60]!r}; a score must be between 0 and 1"
            )
        return result


FEATURES = ("constant", *TERMS, "length", "sentences", "list", "material", "cue", "options", "strict")
"""Names of the numbers that people's scores are explained by."""


def _features(prompts: Sequence[str]) -> np.ndarray:
    """Return [N, F] in the order of `FEATURES`; sizes are scaled to about 1 for a long prompt."""
    rows = np.zeros((len(prompts), len(FEATURES)))
    for row, prompt in zip(rows, prompts, strict=True):
        terms, parsed = lint(prompt).breakdown, structure(prompt)
        sizes = (tokens(prompt) / 100.0, len(sentences(prompt)) / 10.0, len(list_items(prompt)) / 10.0)
        parts = (bool(parsed.material), bool(parsed.cue), bool(parsed.options), parsed.strict)
        row[:] = [1.0, *(terms.get(name, 0.0) for name in TERMS), *np.minimum(sizes, 3.0), *parts]
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
