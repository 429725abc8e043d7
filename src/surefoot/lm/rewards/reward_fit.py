"""Fits a reward model to preferences (Bradley and Terry 1952)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from surefoot.errors import DataError
from surefoot.lm.constitution.compare import wilson
from surefoot.lm.data import PreferencePair
from surefoot.lm.policy.loading import Speech
from surefoot.lm.rewards.reward_model import BackboneReward, RewardModel, pad


def bradley_terry(chosen: Tensor, rejected: Tensor, margin: Tensor | float = 0.0) -> Tensor:
    """Return -log σ(r_chosen - r_rejected - margin) per pair."""
    return -torch.nn.functional.logsigmoid(chosen - rejected - margin)


@dataclass(slots=True)
class RewardFit:
    """The result of fitting a reward model."""

    losses: list[float] = field(default_factory=list[float])
    accuracy: list[float] = field(default_factory=list[float])
    val_losses: list[float] = field(default_factory=list[float])
    val_accuracy: list[float] = field(default_factory=list[float])
    best_epoch: int = 0
    stopped_early: bool = False
    calibration_error: float = 0.0
    """Mean gap between predicted and observed share of correct pairs, over ten bins."""
    pairs: int = 0
    held_out: int = 0

    @property
    def final_accuracy(self) -> float:
        """Return the accuracy of the selected weights, on held-out pairs if there are any."""
        return self.val_accuracy[self.best_epoch] if self.val_accuracy else self.accuracy[-1]

    def to_json(self) -> dict[str, Any]:
        """Return all fields, and the number of epochs, the final loss and the final accuracy."""
        final = {"final_loss": self.losses[-1], "final_accuracy": self.final_accuracy}
        return {**asdict(self), "epochs": len(self.losses), **final}


def encode_pairs(
    pairs: Sequence[PreferencePair], speech: Speech, *, max_length: int = 512
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return (chosen, rejected) tokens of prompt and response; long prompts are cut at their start."""
    encoded: list[tuple[np.ndarray, np.ndarray]] = []
    for pair in pairs:
        prompt = speech.prompt(pair.prompt) if pair.prompt else np.zeros(0, np.int64)
        both: list[np.ndarray] = []
        for text in (pair.chosen, pair.rejected):
            response = speech.continuation(text)[:-1][:max_length]
            both.append(np.concatenate([prompt[max(0, len(prompt) + len(response) - max_length) :], response]))
        if not all(len(row) for row in both):
            raise DataError(f"a pair has an empty side: {pair!r:.120}")
        encoded.append((both[0], both[1]))
    return encoded


def train_reward_model(
    model: RewardModel | BackboneReward,
    pairs: Sequence[PreferencePair],
    speech: Speech,
    *,
    epochs: int = 3,
    batch_size: int = 16,
    lr: float = 1e-3,
    weight_decay: float = 0.01,
    validation: float = 0.1,
    patience: int = 3,
    max_length: int = 512,
    seed: int = 0,
    features: tuple[Tensor, Tensor] | None = None,
) -> RewardFit:
    """Fit a reward model, and leave it with the weights of the epoch with the lowest held-out loss.

    Args:
        model: The model to fit. With a frozen trunk only its head learns.
        pairs: The preferences.
        speech: The tokenizer.
        epochs: Passes over the pairs.
        batch_size: Pairs per gradient step.
        lr: Learning rate of AdamW.
        weight_decay: Weight decay of AdamW.
        validation: Share of pairs that is held out, drawn at random.
        patience: Epochs without a better held-out loss after which fitting stops.
        max_length: Tokens per text.
        seed: Seed for the split and the shuffling.
        features: The result of `pair_features`, if it is known; for a frozen trunk only.
    """
    if len(pairs) < 2:
        raise DataError(f"{len(pairs)} pairs are too few to fit a reward model")
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(pairs), generator=generator)
    held = round(validation * len(pairs))
    # At random: datasets are often sorted by source.
    val, train = order[:held], order[held:]
    score = _scorer(model, pairs, speech, max_length, features)
    learning = model.head if model.frozen else model
    parameters = [p for p in learning.parameters() if p.requires_grad]
    margin = torch.tensor([pair.margin for pair in pairs])
    # torch's class: fitting takes minutes, so its start-up time does not matter here.
    optimizer = torch.optim.AdamW(parameters, lr=lr, weight_decay=weight_decay)
    fit = RewardFit(pairs=len(train), held_out=held)
    best, best_weights = math.inf, [p.detach().clone() for p in parameters]
    for epoch in range(epochs):
        shuffled = train[torch.randperm(len(train), generator=generator)]
        model.train()
        losses, right = 0.0, 0
        for begin in range(0, len(shuffled), batch_size):
            rows = shuffled[begin : begin + batch_size]
            chosen, rejected = score(rows)
            loss = bradley_terry(chosen, rejected, margin[rows].to(chosen.device)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses, right = losses + float(loss.detach()) * len(rows), right + int((chosen > rejected).sum())
        fit.losses.append(losses / len(train))
        fit.accuracy.append(right / len(train))
        loss, accuracy, _ = _evaluate(model, score, val if held else train)
        if held:
            fit.val_losses.append(loss)
            fit.val_accuracy.append(accuracy)
        if loss < best:
            best, fit.best_epoch, best_weights = loss, epoch, [p.detach().clone() for p in parameters]
        elif epoch - fit.best_epoch >= patience:
            fit.stopped_early = True
            break
    with torch.no_grad():
        for parameter, value in zip(parameters, best_weights, strict=True):
            parameter.copy_(value)
    fit.calibration_error = _evaluate(model, score, val if held else train)[2]
    _normalise(model, score, train)
    return fit


def _scorer(
    model: RewardModel | BackboneReward, pairs: Sequence[PreferencePair], speech: Speech, max_length: int, known: Any
) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """Return a function from indices of pairs to the scores of (chosen, rejected)."""
    if model.frozen:
        # The trunk never changes, so each text passes through it once for all epochs.
        good, bad = known or pair_features(model, pairs, speech, max_length=max_length)
        return lambda rows: (model.scored(good[rows]), model.scored(bad[rows]))
    encoded = encode_pairs(pairs, speech, max_length=max_length)

    def score(rows: Tensor) -> tuple[Tensor, Tensor]:
        texts = [encoded[i][side] for side in (0, 1) for i in rows.tolist()]
        both = model(*pad(texts, model.head.weight.device))
        return both[: len(rows)], both[len(rows) :]

    return score


@torch.no_grad()
def pair_features(
    model: RewardModel | BackboneReward,
    pairs: Sequence[PreferencePair],
    speech: Speech,
    *,
    max_length: int = 512,
    rows: int = 16,
) -> tuple[Tensor, Tensor]:
    """Return the trunk's features of chosen and rejected, [n, width] each."""
    encoded = encode_pairs(pairs, speech, max_length=max_length)
    flat = [row for both in encoded for row in both]
    # Texts of similar length in one batch, so that little is padded.
    order = sorted(range(len(flat)), key=lambda i: len(flat[i]))
    features = torch.zeros(len(flat), model.head.in_features)
    for begin in range(0, len(order), rows):
        part = order[begin : begin + rows]
        features[part] = model.features(*pad([flat[i] for i in part], model.head.weight.device)).cpu()
    return features[0::2], features[1::2]


@torch.no_grad()
def pair_accuracy(
    model: RewardModel | BackboneReward, pairs: Sequence[PreferencePair], speech: Speech, *, max_length: int = 512
) -> dict[str, Any]:
    """Return {pairs, accuracy, interval} on pairs that the model was not fitted to."""
    chosen, rejected = (model.scored(side) for side in pair_features(model, pairs, speech, max_length=max_length))
    right = int((chosen > rejected).sum())
    return {"pairs": len(pairs), "accuracy": right / len(pairs), "interval": wilson(right, len(pairs))}


@torch.no_grad()
def _evaluate(model: nn.Module, score: Any, rows: Tensor) -> tuple[float, float, float]:
    """Return (loss, accuracy, calibration error) on some pairs."""
    model.eval()
    parts = [score(rows[i : i + 64]) for i in range(0, len(rows), 64)]
    gap = torch.cat([chosen - rejected for chosen, rejected in parts]).cpu()
    confidence, right = torch.sigmoid(gap.abs()), (gap > 0).float()
    # Expected calibration error (Guo et al. 2017) with ten bins; confidence is at least one half.
    error, edges = 0.0, torch.linspace(0.5, 1.0, 11)
    for low, high in itertools.pairwise(edges):
        inside = (confidence >= low) & (confidence < high + (high == 1.0) * 1e-6)
        if inside.any():
            error += float(inside.float().mean() * (confidence[inside].mean() - right[inside].mean()).abs())
    return float(-torch.nn.functional.logsigmoid(gap).mean()), float(right.mean()), error


@torch.no_grad()
def _normalise(model: RewardModel | BackboneReward, score: Any, rows: Tensor) -> None:
    """Set shift and gain so that scores have mean 0 and standard deviation 1 on these pairs."""
    model.shift.zero_()
    model.gain.fill_(1.0)
    scores = torch.cat([torch.cat(score(rows[i : i + 64])) for i in range(0, len(rows), 64)])
    model.shift.copy_(scores.mean())
    model.gain.copy_(1.0 / scores.std(correction=0).clamp(min=1e-6))
