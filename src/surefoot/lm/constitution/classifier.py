"""Judges principles with a sentence encoder that is fitted to labelled answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

import torch
import yaml
from torch import Tensor

from surefoot.errors import DataError
from surefoot.lm.constitution.principles import Principle
from surefoot.lm.rewards.text_features import TextFeatures

FOLDS = 6
# The precisions that the thresholds are chosen for, by cross-validation on the build set: for any breach, and for one principle.
# The second is higher, because answers that either finds are flagged.
PRECISION, OWN_PRECISION = 0.93, 0.96
# A flagged answer breaks every principle with at least this probability: one answer can break several.
SHARE = 0.25
# L2 penalties for features of unit norm: of the weights for breach or not, and of those for one principle.
PENALTIES = (0.1, 0.03)


@dataclass(frozen=True, slots=True)
class LabelledAnswer:
    """An answer, and the principle that it breaks; None if it breaks none."""

    prompt: str
    answer: str
    breaks: str | None


def read_labelled(part: str, path: Path | str | None = None) -> list[LabelledAnswer]:
    """Return the answers of one part, build or test, of the shipped file or of `path`."""
    if path is None:
        text = files("surefoot.lm.constitution").joinpath("labelled.yaml").read_text(encoding="utf-8")
    else:
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as why:
            raise DataError(f"cannot read labelled answers from {path}: {why}") from why
    try:
        content = yaml.safe_load(text)
        principles = cast(dict[str, list[list[str]]], content[part])
        return [
            LabelledAnswer(prompt, answer, label)
            for name, rows in principles.items()
            for prompt, bad, good in rows
            for answer, label in ((bad, name), (good, None))
        ]
    except (yaml.YAMLError, KeyError, TypeError, ValueError, AttributeError) as why:
        raise DataError(
            f"{path or 'labelled.yaml'} must have `{part}: {{PRINCIPLE: [[prompt, breach, answer without a breach]]}}`"
        ) from why


class PrincipleClassifier:
    """Whether an answer breaks a principle: by linear classifiers for any breach, for which principle it is, and per principle.

    An answer is flagged if the first two find a breach of the principle, or if the principle's own classifier is sure. Use it as
    `Constitution.evaluate(text, by=classifier)`. It knows the principles of its labelled answers; others are judged by their
    signs.

    Args:
        labelled: YAML file of labelled answers; None: the shipped ones, for the four shipped principles.
        model: The sentence encoder.
    """

    def __init__(self, labelled: Path | str | None = None, *, model: str | Path = "minilm") -> None:
        answers = read_labelled("build", labelled)
        self.names = sorted({answer.breaks for answer in answers if answer.breaks is not None})
        self.features = TextFeatures(model)
        raw = self._raw([answer.answer for answer in answers])
        self.mean, std = raw.mean(0), raw.std(0, correction=0)
        # An encoder can have a dead dimension.
        self.factor = torch.where(std > 1e-6, 1.0 / std.clamp(min=1e-6), 0.0) / raw.shape[1] ** 0.5
        x = (raw - self.mean) * self.factor
        breach = torch.tensor([float(answer.breaks is not None) for answer in answers])
        kind = torch.tensor([self.names.index(answer.breaks) if answer.breaks else -1 for answer in answers])
        # The two answers to a prompt stay together, or one would give the other away.
        fold = torch.arange(len(answers)) // 2 % FOLDS
        every = torch.ones(len(answers), dtype=torch.bool)
        self.breach, self.threshold = _fit(x, breach, every, fold, PENALTIES[0], PRECISION)
        found = kind >= 0
        self.kind = _logistic(x[found], torch.nn.functional.one_hot(kind[found]).float(), PENALTIES[1])
        # An answer that breaks another principle may break this one too, so it is left out.
        parts = [
            _fit(x, (kind == k).float(), (kind == k) | ~found, fold, PENALTIES[1], OWN_PRECISION)
            for k in range(len(self.names))
        ]
        self.own = torch.cat([weights for weights, _ in parts], 1)
        self.own_thresholds = torch.tensor([threshold for _, threshold in parts])
        self._last: tuple[str, Tensor] | None = None

    @torch.no_grad()
    def _raw(self, texts: Sequence[str]) -> Tensor:
        return self.features.states(texts, peaks=True).flatten(1)

    def chances(self, texts: Sequence[str]) -> Tensor:
        """Return [n, principles]: the share of each principle for flagged answers, 0 for the others."""
        x = (self._raw(texts) - self.mean) * self.factor
        flagged = _apply(self.breach, x)[:, 0] > self.threshold
        share = torch.sigmoid(_apply(self.kind, x))
        share = flagged.unsqueeze(1) * share / share.sum(1, keepdim=True)
        return torch.where(_apply(self.own, x) > self.own_thresholds, share.clamp(min=SHARE), share)

    def __call__(self, principle: Principle, text: str) -> dict[str, Any]:
        """Return {flagged, method, p} for one principle."""
        if principle.name not in self.names:
            return principle.by_rules(text)
        if self._last is None or self._last[0] != text:
            self._last = (text, self.chances([text])[0])
        p = float(self._last[1][self.names.index(principle.name)])
        return {"flagged": p >= SHARE, "method": "classifier", "p": p}


def measure(classifier: PrincipleClassifier, answers: Sequence[LabelledAnswer]) -> dict[str, dict[str, float]]:
    """Return {principle or "any": {precision, recall, breaches}} on labelled answers.

    An answer that breaks one principle may break others too, so it counts neither for nor against those.
    """
    chances = classifier.chances([answer.answer for answer in answers])
    fine = torch.tensor([answer.breaks is None for answer in answers])
    results: dict[str, dict[str, float]] = {}
    for number, name in enumerate([*classifier.names, "any"]):
        flagged = chances.amax(1) > 0 if name == "any" else chances[:, number] >= SHARE
        breaks = ~fine if name == "any" else torch.tensor([answer.breaks == name for answer in answers])
        right, wrong = int((flagged & breaks).sum()), int((flagged & fine).sum())
        results[name] = {
            "precision": right / max(1, right + wrong),
            "recall": right / max(1, int(breaks.sum())),
            "breaches": float(breaks.sum()),
        }
    return results


def _logistic(x: Tensor, y: Tensor, penalty: float) -> Tensor:
    """Return [D + 1, K] weights, the offset last: the minimum of Σ log-loss + penalty/2 |w|², each column by itself."""
    weights = torch.zeros(x.shape[1] + 1, y.shape[1], requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=80, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        error = torch.nn.functional.binary_cross_entropy_with_logits(_apply(weights, x), y, reduction="sum")
        total = error + 0.5 * penalty * weights[:-1].square().sum()
        total.backward()
        return total

    optimizer.step(loss)  # pyright: ignore[reportArgumentType]  # torch's stub wants a float, its code a tensor
    return weights.detach()


def _apply(weights: Tensor, x: Tensor) -> Tensor:
    return x @ weights[:-1] + weights[-1]


def _fit(x: Tensor, y: Tensor, use: Tensor, fold: Tensor, penalty: float, precision: float) -> tuple[Tensor, float]:
    """Return (weights fitted to the rows `use`, the lowest threshold that has `precision` on rows that were held out)."""
    scores = torch.zeros(len(x))
    for number in range(FOLDS):
        rest, held = use & (fold != number), use & (fold == number)
        scores[held] = _apply(_logistic(x[rest], y[rest].unsqueeze(1), penalty), x[held])[:, 0]
    scores, breaks = scores[use], y[use] > 0
    # Of all thresholds with this precision the lowest finds the most.
    steps = [t for t in scores.sort().values.tolist() if _precision(scores > t, breaks) >= precision]
    return _logistic(x[use], y[use].unsqueeze(1), penalty), min(steps, default=float(scores.max()))


def _precision(above: Tensor, breaks: Tensor) -> float:
    return float(breaks[above].float().mean()) if above.any() else 0.0
