"""Judges principles with a sentence encoder and a small language model, by a fit to labelled answers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

import torch
import yaml
from safetensors.torch import load_file, save
from torch import Tensor

from surefoot.errors import DataError
from surefoot.learn.checkpoint.atomic_files import REAL_FS, replace_file
from surefoot.lm.constitution.principles import Principle
from surefoot.lm.download import KNOWN, cache_root
from surefoot.lm.rewards.text_features import (
    BUCKETS,
    Features,
    FeatureScale,
    LanguageModelStates,
    TextFeatures,
    bags_of_words,
)

FOLDS = 6
# Part of the name of a fit in the cache: raise it when other code would fit other weights.
FIT_VERSION = 2
# The precision that the threshold of a principle is chosen for, on build answers that were held out.
PRECISION = 0.93
# L2 penalties: of the classifiers, and of the few weights that combine their scores.
PENALTY, COMBINING_PENALTY = 0.05, 0.01
# The key of answers that break no principle and have no counterpart, in a file of labelled answers.
FINE = "fine"
# libyaml's loader is ten times as fast; PyYAML is sometimes built without it.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class LabelledAnswer:
    """An answer, and the principle that it breaks; None if it breaks none."""

    prompt: str
    answer: str
    breaks: str | None


def read_labelled(part: str, path: Path | str | None = None) -> list[LabelledAnswer]:
    """Return the answers of one part of the shipped file or of `path`: build, test, second_test, …."""
    if path is None:
        text = files("surefoot.lm.constitution").joinpath("labelled.yaml").read_text(encoding="utf-8")
    else:
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as why:
            raise DataError(f"cannot read labelled answers from {path}: {why}") from why
    try:
        content: Any = _LOADER(text).get_single_data()
        principles = cast(dict[str, list[list[str]]], content[part])
        return [
            LabelledAnswer(prompt, answer, label)
            for name, rows in principles.items()
            for prompt, *texts in rows
            for answer, label in zip(texts, (None,) if name == FINE else (name, None), strict=True)
        ]
    except (yaml.YAMLError, KeyError, TypeError, ValueError, AttributeError) as why:
        raise DataError(
            f"{path or 'labelled.yaml'} must have `{part}: {{PRINCIPLE: [[prompt, breach, answer without a breach]]}}`"
        ) from why


class PrincipleClassifier:
    """Whether an answer breaks a principle: by kernel classifiers on states of two models and on words.

    One classifier looks for any breach and one per principle for its own; a second, small regression per principle combines
    their scores into a probability. It is fitted to scores of answers that were held out, and so is its threshold. Use it as
    `Constitution.evaluate(text, by=classifier)`. It knows the principles of its labelled answers; others are judged by their
    signs.

    Args:
        labelled: YAML file of labelled answers; None: the shipped ones, for the four shipped principles.
        model: The sentence encoder.
        language_model: A causal language model whose states are used too; None: the encoder alone, which finds fewer untruths.
    """

    def __init__(
        self,
        labelled: Path | str | None = None,
        *,
        model: str | Path = "minilm",
        language_model: str | Path | None = "smollm2",
    ) -> None:
        answers = read_labelled("build", labelled)
        self.names = sorted({answer.breaks for answer in answers if answer.breaks is not None})
        self.features = TextFeatures(model)
        self.language_states = LanguageModelStates(language_model) if language_model is not None else None
        encoder_layers, hidden_size = len(self.features.layers) + 1, int(self.features.encoder.config.hidden_size)
        # Of the encoder the mean and the highest states, of the language model the mean and the last one.
        self._widths = [2 * encoder_layers * hidden_size]
        if self.language_states is not None:
            self._widths.append(2 * len(self.language_states.layers) * self.language_states.hidden_size)
        # Fitting takes minutes. A packaged model is known by its name, a folder may change.
        key = sha256(f"{FIT_VERSION} {PRECISION} {model} {language_model} {answers}".encode()).hexdigest()[:16]
        packaged = model in KNOWN and (language_model is None or language_model in KNOWN)
        file = cache_root() / "classifiers" / f"{key}.safetensors" if packaged else None
        fitted = load_file(file) if file is not None and file.is_file() else self._fit(answers)
        if file is not None and not file.is_file():
            # An unwritable cache costs time at the next start and nothing else.
            with suppress(OSError):
                file.parent.mkdir(parents=True, exist_ok=True)
                replace_file(REAL_FS, file, save(fitted))
        self.scale = FeatureScale(fitted["mean"], fitted["factor"], fitted["idf"])
        self.support, self.dual = fitted["support"], fitted["dual"]
        self.words, self.offset = fitted["words"], fitted["offset"]
        self.combine, self.thresholds = fitted["combine"], fitted["thresholds"]
        self._last: tuple[str, Tensor, Tensor] | None = None

    def _fit(self, answers: Sequence[LabelledAnswer]) -> dict[str, Tensor]:
        features = self._features([answer.answer for answer in answers])
        scale = FeatureScale.fit(features, 0)
        dense, words, weights = scale.apply(features)
        support = self._unit(dense)
        used, place = words.unique(return_inverse=True)
        bags = torch.zeros(len(words), len(used)).scatter_add_(1, place, weights)
        x, basis = _coordinates(self._similarity(support, support) + bags @ bags.T)
        kind = torch.tensor([self.names.index(answer.breaks) if answer.breaks else -1 for answer in answers])
        fine, own = kind < 0, kind.unsqueeze(1) == torch.arange(len(self.names))
        breaks = torch.cat([~fine.unsqueeze(1), own], 1).float()
        # An answer that breaks another principle may break this one too, so it is left out.
        use = torch.cat([torch.ones(len(kind), 1), (own | fine.unsqueeze(1)).float()], 1)
        # The answers to a prompt stay together, or one would give the other away.
        prompts = {prompt: number for number, prompt in enumerate(dict.fromkeys(answer.prompt for answer in answers))}
        fold = torch.tensor([prompts[answer.prompt] for answer in answers]) % FOLDS
        scores = torch.zeros(len(kind), breaks.shape[1])
        for number in range(FOLDS):
            rest, held = fold != number, fold == number
            scores[held] = _apply(_logistic(x[rest], breaks[rest], use[rest], PENALTY), x[held])
        combine = _logistic(scores, breaks[:, 1:], use[:, 1:], COMBINING_PENALTY)
        chances = _apply(combine, scores)
        weights = _logistic(x, breaks, use, PENALTY)
        dual = basis @ weights[:-1]
        by_word = torch.zeros(BUCKETS + 1, dual.shape[1])
        by_word[used] = bags.T @ dual
        return {
            **{name: getattr(scale, name) for name in ("mean", "factor", "idf")},
            "support": support,
            "dual": dual,
            "words": by_word,
            "offset": weights[-1].clone(),
            "combine": combine,
            "thresholds": torch.tensor(
                [_threshold(chances[own[:, k], k], chances[fine, k]) for k in range(len(self.names))]
            ),
        }

    @torch.no_grad()
    def _features(self, texts: Sequence[str]) -> Features:
        parts = [self.features.states(texts, peaks=True).flatten(1)]
        if self.language_states is not None:
            parts.append(self.language_states(texts).flatten(1))
        return Features(torch.cat(parts, 1), *bags_of_words(texts))

    def _unit(self, dense: Tensor) -> Tensor:
        """Return the states with norm 1 for each model."""
        return torch.cat([torch.nn.functional.normalize(part) for part in dense.split(self._widths, 1)], 1)

    def _similarity(self, dense: Tensor, support: Tensor) -> Tensor:
        """Return the sum over the models of a Gaussian kernel of unit vectors, 2 exp(-|a - b|² / 2), as [n, m]."""
        # Unrelated answers are about √2 apart. The factor weighs it against words; both by cross-validation on the build part.
        parts = zip(dense.split(self._widths, 1), support.split(self._widths, 1), strict=True)
        return torch.stack([2.0 * torch.exp(a @ b.T - 1.0) for a, b in parts]).sum(0)

    def _scores(self, texts: Sequence[str]) -> Tensor:
        dense, words, weights = self.scale.apply(self._features(texts))
        scores = self._similarity(self._unit(dense), self.support) @ self.dual + self.offset
        scores = scores + (self.words[words] * weights.unsqueeze(2)).sum(1)
        return _apply(self.combine, scores)

    def flags(self, texts: Sequence[str]) -> Tensor:
        """Return [n, principles]: True where an answer breaks a principle."""
        return self._scores(texts) >= self.thresholds

    def __call__(self, principle: Principle, text: str) -> dict[str, Any]:
        """Return {flagged, method, p} for one principle."""
        if principle.name not in self.names:
            return principle.by_rules(text)
        # All principles are judged for one text after the other.
        if self._last is None or self._last[0] != text:
            scores = self._scores([text])[0]
            self._last = (text, scores >= self.thresholds, torch.sigmoid(scores))
        place = self.names.index(principle.name)
        return {"flagged": bool(self._last[1][place]), "method": "classifier", "p": float(self._last[2][place])}


def measure(classifier: PrincipleClassifier, answers: Sequence[LabelledAnswer]) -> dict[str, dict[str, float]]:
    """Return {principle or "any": {precision, recall, breaches}} on labelled answers.

    An answer that breaks one principle may break others too, so it counts neither for nor against those.
    """
    flags = classifier.flags([answer.answer for answer in answers])
    fine = torch.tensor([answer.breaks is None for answer in answers])
    results: dict[str, dict[str, float]] = {}
    for number, name in enumerate([*classifier.names, "any"]):
        flagged = flags.any(1) if name == "any" else flags[:, number]
        breaks = ~fine if name == "any" else torch.tensor([answer.breaks == name for answer in answers])
        right, wrong = int((flagged & breaks).sum()), int((flagged & fine).sum())
        results[name] = {
            "precision": right / max(1, right + wrong),
            "recall": right / max(1, int(breaks.sum())),
            "breaches": float(breaks.sum()),
        }
    return results


def _coordinates(kernel: Tensor) -> tuple[Tensor, Tensor]:
    """Return (z [n, r] with z zᵀ = kernel, basis [n, r] with z = kernel · basis): a model linear in z is one in the kernel."""
    values, vectors = torch.linalg.eigh(kernel.double())
    large = values > 1e-6 * values[-1]
    root = values[large].sqrt()
    return (vectors[:, large] * root).float(), (vectors[:, large] / root).float()


def _logistic(x: Tensor, y: Tensor, use: Tensor, penalty: float) -> Tensor:
    """Return [D + 1, K] weights, the offset last: the minimum of Σ use · log-loss + penalty/2 |w|²."""
    weights = torch.zeros(x.shape[1] + 1, y.shape[1], requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=150, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        error = torch.nn.functional.binary_cross_entropy_with_logits(_apply(weights, x), y, use, reduction="sum")
        total = error + 0.5 * penalty * weights[:-1].square().sum()
        total.backward()
        return total

    optimizer.step(loss)  # pyright: ignore[reportArgumentType]  # torch's stub wants a float, its code a tensor
    return weights.detach()


def _apply(weights: Tensor, x: Tensor) -> Tensor:
    return x @ weights[:-1] + weights[-1]


def _threshold(breaches: Tensor, fine: Tensor) -> float:
    """Return the lowest score from which on at least `PRECISION` of the answers are breaches."""
    found = torch.stack([(breaches >= score).sum() for score in breaches])
    wrong = torch.stack([(fine >= score).sum() for score in breaches])
    # Of all thresholds with this precision the lowest finds the most; if none has it, only the clearest breach is flagged.
    precise = breaches[found >= PRECISION * (found + wrong)]
    return float(precise.amin() if len(precise) else breaches.amax())
