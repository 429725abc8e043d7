"""Fit a reward model to preferences (Bradley–Terry)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from surefoot.errors import DataError
from surefoot.lm.data import PreferencePair
from surefoot.lm.policy.loading import Speech
from surefoot.lm.rewards.reward_model import BackboneReward, RewardModel, pad


def bradley_terry(chosen: Tensor, rejected: Tensor, margin: Tensor | float = 0.0) -> Tensor:
    """-log σ(r_chosen - r_rejected - margin) per pair."""
    return -torch.nn.functional.logsigmoid(chosen - rejected - margin)


@dataclass(slots=True)
class RewardFit:
    """How fitting went."""

    losses: list[float] = field(default_factory=list[float])
    accuracy: list[float] = field(default_factory=list[float])
    val_losses: list[float] = field(default_factory=list[float])
    val_accuracy: list[float] = field(default_factory=list[float])
    best_epoch: int = 0
    stopped_early: bool = False
    calibration_error: float = 0.0
    """Mean gap between the probability it gives the chosen response and how often that is right, over ten bins."""
    pairs: int = 0
    held_out: int = 0

    @property
    def final_accuracy(self) -> float:
        """On held-out pairs, of the weights that were kept."""
        return self.val_accuracy[self.best_epoch] if self.val_accuracy else self.accuracy[-1]

    def to_json(self) -> dict[str, Any]:
        """Everything, under the names people know."""
        return {
            "losses": self.losses,
            "accuracy": self.accuracy,
            "val_losses": self.val_losses,
            "val_accuracy": self.val_accuracy,
            "epochs": len(self.losses),
            "final_loss": self.losses[-1],
            "final_accuracy": self.final_accuracy,
            "best_epoch": self.best_epoch,
            "stopped_early": self.stopped_early,
            "calibration_error": self.calibration_error,
            "pairs": self.pairs,
            "held_out": self.held_out,
        }


def encode_pairs(
    pairs: Sequence[PreferencePair], speech: Speech, *, max_length: int = 512
) -> list[tuple[np.ndarray, np.ndarray]]:
    """(chosen, rejected) tokens of prompt and response; of long prompts the end is kept."""
    found: list[tuple[np.ndarray, np.ndarray]] = []
    for pair in pairs:
        prompt = speech.prompt(pair.prompt) if pair.prompt else np.zeros(0, np.int64)
        both: list[np.ndarray] = []
        for text in (pair.chosen, pair.rejected):
            response = speech.continuation(text)[:-1][:max_length]
            both.append(np.concatenate([prompt[max(0, len(prompt) + len(response) - max_length) :], response]))
        if not all(len(row) for row in both):
            raise DataError(f"a pair has an empty side: {pair!r:.120}")
        found.append((both[0], both[1]))
    return found


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
    """Fit to preferences; the weights kept are those of the epoch that finds held-out pairs likeliest.

    The held-out pairs are drawn from everywhere, not from the end. A frozen trunk is asked once a text, after which only
    the head is trained. `features` are given where they are known already.
    """
    if len(pairs) < 2:
        raise DataError(f"{len(pairs)} pairs are too few to fit a reward model")
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(pairs), generator=generator)
    held = round(validation * len(pairs))
    val, train = order[:held], order[held:]
    if model.frozen:
        known = features or pair_features(model, pairs, speech, max_length=max_length)
        score = _FromFeatures(model, *known)
        parameters: list[nn.Parameter] = list(model.head.parameters())
    else:
        score = _FromText(model, encode_pairs(pairs, speech, max_length=max_length))
        parameters = [p for p in model.parameters() if p.requires_grad]
    margin = torch.tensor([pair.margin for pair in pairs])
    optimizer = torch.optim.AdamW(parameters, lr=lr, weight_decay=weight_decay)
    fit = RewardFit(pairs=len(train), held_out=held)
    best, kept = math.inf, [p.detach().clone() for p in parameters]
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
        judged = _judge(model, score, val if held else train)
        if held:
            fit.val_losses.append(judged[0])
            fit.val_accuracy.append(judged[1])
        if judged[0] < best:
            best, fit.best_epoch, kept = judged[0], epoch, [p.detach().clone() for p in parameters]
        elif epoch - fit.best_epoch >= patience:
            fit.stopped_early = True
            break
    with torch.no_grad():
        for parameter, value in zip(parameters, kept, strict=True):
            parameter.copy_(value)
    fit.calibration_error = _judge(model, score, val if held else train)[2]
    _normalise(model, score, train)
    return fit


class _FromFeatures:
    def __init__(self, model: RewardModel | BackboneReward, chosen: Tensor, rejected: Tensor) -> None:
        self.model, self.chosen, self.rejected = model, chosen, rejected

    def __call__(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        return self.model.scored(self.chosen[rows]), self.model.scored(self.rejected[rows])


class _FromText:
    def __init__(self, model: RewardModel | BackboneReward, rows: list[tuple[np.ndarray, np.ndarray]]) -> None:
        self.model, self.rows = model, rows

    def __call__(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        chosen = [self.rows[i][0] for i in rows.tolist()]
        rejected = [self.rows[i][1] for i in rows.tolist()]
        both = self.model(*pad(chosen + rejected, self.model.head.weight.device))
        return both[: len(chosen)], both[len(chosen) :]


@torch.no_grad()
def pair_features(
    model: RewardModel | BackboneReward,
    pairs: Sequence[PreferencePair],
    speech: Speech,
    *,
    max_length: int = 512,
    rows: int = 16,
) -> tuple[Tensor, Tensor]:
    """([n, width], [n, width]) of chosen and rejected, texts of similar length side by side."""
    encoded = encode_pairs(pairs, speech, max_length=max_length)
    flat = [row for both in encoded for row in both]
    order = sorted(range(len(flat)), key=lambda i: len(flat[i]))
    found = torch.zeros(len(flat), model.head.in_features)
    for begin in range(0, len(order), rows):
        part = order[begin : begin + rows]
        found[part] = model.features(*pad([flat[i] for i in part], model.head.weight.device)).cpu()
    return found[0::2], found[1::2]


@torch.no_grad()
def _judge(model: nn.Module, score: Any, rows: Tensor) -> tuple[float, float, float]:
    """(loss, accuracy, calibration error) on some pairs."""
    model.eval()
    parts = [score(rows[i : i + 64]) for i in range(0, len(rows), 64)]
    gap = torch.cat([chosen - rejected for chosen, rejected in parts]).cpu()
    confidence, right = torch.sigmoid(gap.abs()), (gap > 0).float()
    error, edges = 0.0, torch.linspace(0.5, 1.0, 11)
    for low, high in itertools.pairwise(edges):
        inside = (confidence >= low) & (confidence < high + (high == 1.0) * 1e-6)
        if inside.any():
            error += float(inside.float().mean() * (confidence[inside].mean() - right[inside].mean()).abs())
    return float(-torch.nn.functional.logsigmoid(gap).mean()), float(right.mean()), error


@torch.no_grad()
def _normalise(model: RewardModel | BackboneReward, score: Any, rows: Tensor) -> None:
    """Set shift and gain so that scores have mean 0 and deviation 1 on these pairs."""
    model.shift.zero_()
    model.gain.fill_(1.0)
    said = torch.cat([torch.cat(score(rows[i : i + 64])) for i in range(0, len(rows), 64)])
    model.shift.copy_(said.mean())
    model.gain.copy_(1.0 / said.std(correction=0).clamp(min=1e-6))
