"""Reward models on text features: linear, fitted to preference pairs (Bradley and Terry 1952), measured by cross-validation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from surefoot.errors import ConfigError, DataError
from surefoot.lm.constitution.compare import wilson
from surefoot.lm.data import PreferencePair, Talk
from surefoot.lm.rewards.text_features import BUCKETS, Features, FeatureScale, TextFeatures

# Five folds: 80 % of the pairs are trained on each time, which is close to the final fit.
FOLDS = 5
# Strengths of the L2 penalty that cross-validation chooses from, for features of unit variance: w is N(0, 1/strength).
STRENGTHS = (1.0, 3.0, 10.0, 30.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairsFit:
    """The result of fitting to pairs; all numbers are of pairs that the weights were not fitted to."""

    pairs: int
    accuracy: float
    """Over all folds; the strength of the penalty is chosen inside the other folds."""
    interval: tuple[float, float]
    """95 %, Wilson."""
    calibration_error: float
    """Mean gap between predicted and observed share of correct pairs, over ten bins."""
    slope: float
    """The probability that a response is preferred is σ(slope · difference of scores)."""
    strength: float
    """Of the L2 penalty, for the weights that are saved."""

    def to_json(self) -> dict[str, Any]:
        """Return all fields."""
        return asdict(self)


Scaled = tuple[Tensor, Tensor, Tensor]


def _scores(head: Tensor, words: Tensor, scaled: Scaled) -> Tensor:
    dense, buckets, weights = scaled
    return dense @ head + (words[buckets] * weights).sum(1)


def _fit(good: Scaled, bad: Scaled, margin: Tensor, strength: float) -> tuple[Tensor, Tensor]:
    """Return (head [D], words [BUCKETS + 1]): the minimum of Σ -log σ(s_good - s_bad - margin) + strength/2 |w|²."""
    head = torch.zeros(good[0].shape[1], requires_grad=True)
    words = torch.zeros(BUCKETS + 1, requires_grad=True)
    # Convex, so L-BFGS finds the minimum, whatever the start.
    optimizer = torch.optim.LBFGS([head, words], max_iter=60, tolerance_change=1e-6, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        gap = _scores(head, words, good) - _scores(head, words, bad) - margin
        total = torch.nn.functional.softplus(-gap).sum()
        total = total + 0.5 * strength * (head.square().sum() + words.square().sum())
        total.backward()
        return total

    optimizer.step(loss)  # pyright: ignore[reportArgumentType]  # torch's stub wants a float, its code a tensor
    return head.detach(), words.detach()


class TextReward:
    """A reward model on text: calling it with conversations returns one score each, about mean 0 and deviation 1."""

    __name__ = "text_reward"

    def __init__(self, features: TextFeatures) -> None:
        self.features = features
        self.scale: FeatureScale | None = None
        self.head, self.words = torch.zeros(features.width), torch.zeros(BUCKETS + 1)
        self.shift, self.gain = 0.0, 1.0

    def __call__(self, conversations: list[list[dict[str, str]]]) -> list[float]:
        return self.score([talk[:-1] for talk in conversations], [talk[-1]["content"] for talk in conversations])

    def score(self, prompts: Sequence[Talk], responses: Sequence[str]) -> list[float]:
        """Return one score per response."""
        if self.scale is None:
            raise ConfigError("this reward model is not fitted")
        raw = _scores(self.head, self.words, self.scale.apply(self.features(prompts, responses)))
        return ((raw - self.shift) * self.gain).tolist()

    def fit(self, pairs: Sequence[PreferencePair], *, seed: int = 0) -> PairsFit:
        """Fit to preferences, and return accuracy and calibration over five folds."""
        if len(pairs) < 2 * FOLDS:
            raise DataError(f"{len(pairs)} pairs are too few to fit a reward model; {2 * FOLDS} are the least")
        prompts = [pair.prompt for pair in pairs]
        good = self.features(prompts, [pair.chosen for pair in pairs])
        bad = self.features(prompts, [pair.rejected for pair in pairs])
        margin = torch.tensor([pair.margin for pair in pairs])
        gap, strength = self._cross_validate(good, bad, margin, seed)
        slope = _slope(gap)
        every = torch.arange(len(pairs))
        self.scale = self._scaling(good, bad, every)
        scaled = self.scale.apply(good), self.scale.apply(bad)
        self.head, self.words = _fit(*scaled, margin, strength)
        scores = torch.cat([_scores(self.head, self.words, side) for side in scaled])
        self.shift, self.gain = float(scores.mean()), 1.0 / max(1e-6, float(scores.std(correction=0)))
        right = gap > 0
        return PairsFit(
            pairs=len(pairs),
            accuracy=float(right.float().mean()),
            interval=wilson(int(right.sum()), len(pairs)),
            calibration_error=calibration_error(slope * gap),
            slope=slope / self.gain,
            strength=strength,
        )

    def accuracy(self, pairs: Sequence[PreferencePair]) -> dict[str, Any]:
        """Return {pairs, accuracy, interval} on pairs that the model was not fitted to."""
        prompts = [pair.prompt for pair in pairs]
        scores = [self.score(prompts, [getattr(pair, side) for pair in pairs]) for side in ("chosen", "rejected")]
        right = sum(a > b for a, b in zip(*scores, strict=True))
        return {"pairs": len(pairs), "accuracy": right / len(pairs), "interval": wilson(right, len(pairs))}

    def _scaling(self, good: Features, bad: Features, rows: Tensor) -> FeatureScale:
        longest = max(good.words.shape[1], bad.words.shape[1])
        parts = [_widen(side[rows], longest) for side in (good, bad)]
        both = Features(*(torch.cat([getattr(p, f) for p in parts]) for f in ("dense", "words", "weights")))
        return FeatureScale.fit(both, self.features.width - len(self.features.layers) * _hidden(self.features))

    def _cross_validate(self, good: Features, bad: Features, margin: Tensor, seed: int) -> tuple[Tensor, float]:
        """Return (difference of scores for every pair, by weights fitted to the other folds; the best strength)."""
        order = torch.randperm(len(margin), generator=torch.Generator().manual_seed(seed))
        folds = [order[i::FOLDS] for i in range(FOLDS)]
        gaps = {strength: torch.zeros(len(margin)) for strength in STRENGTHS}
        for fold in folds:
            rest = order[~torch.isin(order, fold)]
            scale = self._scaling(good, bad, rest)
            fitted = scale.apply(good[rest]), scale.apply(bad[rest])
            tested = scale.apply(good[fold]), scale.apply(bad[fold])
            for strength in STRENGTHS:
                weights = _fit(*fitted, margin[rest], strength)
                gaps[strength][fold] = _scores(*weights, tested[0]) - _scores(*weights, tested[1])
        # A fold's strength is the best on the four others, so that no fold chooses for itself.
        losses = {
            s: torch.stack([torch.nn.functional.softplus(-_slope(g) * g[f]).mean() for f in folds])
            for s, g in gaps.items()
        }
        chosen = torch.zeros(len(margin))
        for number, fold in enumerate(folds):
            others = {s: float(each.sum() - each[number]) for s, each in losses.items()}
            chosen[fold] = gaps[min(others, key=lambda s: others[s])][fold]
        return chosen, min(losses, key=lambda s: float(losses[s].sum()))

    def save(self, folder: Path | str, fit: PairsFit, test: dict[str, Any] | None = None) -> Path:
        """Write the weights and the result of the fit to a folder, and return it."""
        assert self.scale is not None
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        tensors = {"head": self.head, "words": self.words, "mean": self.scale.mean, "factor": self.scale.factor}
        tensors |= {"idf": self.scale.idf, "shift_gain": torch.tensor([self.shift, self.gain])}
        save_file({name: x.contiguous() for name, x in tensors.items()}, folder / "reward.safetensors")
        about = {"base": self.features.model_name, "kind": "text", "frozen": True, **fit.to_json(), "test": test}
        (folder / "reward.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
        return folder

    @classmethod
    def load(cls, folder: Path | str, *, device: str | torch.device = "cpu") -> TextReward:
        """Load what `save` wrote."""
        about = json.loads((Path(folder) / "reward.json").read_text(encoding="utf-8"))
        saved = load_file(Path(folder) / "reward.safetensors")
        model = cls(TextFeatures(about["base"], device=device))
        if saved["head"].shape != model.head.shape:
            raise ConfigError(f"{folder} was made for another model than {about['base']}")
        model.head, model.words = saved["head"], saved["words"]
        model.scale = FeatureScale(saved["mean"], saved["factor"], saved["idf"])
        model.shift, model.gain = saved["shift_gain"].tolist()
        return model


def _hidden(features: TextFeatures) -> int:
    return int(features.encoder.config.hidden_size)


def _widen(features: Features, size: int) -> Features:
    extra = size - features.words.shape[1]
    words = torch.nn.functional.pad(features.words, (0, extra), value=BUCKETS)
    return Features(features.dense, words, torch.nn.functional.pad(features.weights, (0, extra)))


def _slope(gap: Tensor) -> float:
    """Return the s ≥ 0 that minimises Σ -log σ(s · gap): Platt's calibration without an offset, by Newton's method."""
    s = 1.0 / max(1e-6, float(gap.std()))
    for _ in range(25):
        p = torch.sigmoid(-s * gap)
        slope, curvature = float((-gap * p).sum()), float((gap.square() * p * (1 - p)).sum())
        s = max(1e-3, s - slope / max(1e-9, curvature))
    return s


def calibration_error(logit: Tensor) -> float:
    """Return the expected calibration error (Guo et al. 2017) of pairs with log-odds `logit`, over ten bins."""
    confidence, right = torch.sigmoid(logit.abs()), (logit > 0).float()
    # The confidence of a pair is at least one half, so ten bins cover 0.5 to 1.
    place = ((confidence - 0.5) * 20).long().clamp(max=9)
    error = 0.0
    for number in range(10):
        inside = place == number
        if inside.any():
            error += float(inside.float().mean() * (confidence[inside].mean() - right[inside].mean()).abs())
    return error
