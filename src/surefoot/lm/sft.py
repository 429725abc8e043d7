"""Supervised fine-tuning on demonstrations: only the response's tokens are learned from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from surefoot.errors import DataError
from surefoot.learn.config import PPOConfig
from surefoot.learn.optimizer import Optimizer
from surefoot.lm.data import Talk
from surefoot.lm.policy.backbone import Backbone
from surefoot.lm.policy.loading import Speech
from surefoot.lm.policy.vocabulary_head import score
from surefoot.lm.sampling.layout import Sequences, predicting, response_states


@dataclass(slots=True)
class SFTFit:
    """How fine-tuning went: mean nats a response token, epoch by epoch."""

    losses: list[float] = field(default_factory=list[float])
    val_losses: list[float] = field(default_factory=list[float])
    best_epoch: int = 0
    rows: int = 0
    skipped: int = 0
    """Rows longer than the model's context."""

    def to_json(self) -> dict[str, Any]:
        """Everything."""
        return {name: getattr(self, name) for name in self.__slots__}


def demonstrations(
    rows: Sequence[tuple[Talk, str]], speech: Speech, limit: int | None
) -> tuple[list[tuple[np.ndarray, np.ndarray]], int]:
    """((prompt, response) tokens, how many did not fit)."""
    found = [(speech.prompt(talk), speech.continuation(response)) for talk, response in rows]
    fitting = [pair for pair in found if len(pair[0]) and (limit is None or len(pair[0]) + len(pair[1]) <= limit)]
    if not fitting:
        raise DataError(f"none of {len(rows)} demonstrations fits into the model's {limit} positions")
    return fitting, len(found) - len(fitting)


def finetune(
    backbone: Backbone,
    rows: Sequence[tuple[Talk, str]],
    speech: Speech,
    *,
    epochs: int = 3,
    batch_size: int = 8,
    lr: float = 2e-4,
    validation: float = 0.1,
    seed: int = 0,
    on_epoch: Callable[[int, SFTFit], None] | None = None,
) -> SFTFit:
    """Make responses likelier; the weights kept are those of the epoch that finds held-out ones likeliest."""
    pairs, skipped = demonstrations(rows, speech, backbone.context_length)
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(pairs), generator=generator).tolist()
    held = round(validation * len(pairs)) if len(pairs) > 1 else 0
    val, train = order[:held], order[held:]
    parameters = list(backbone.trained().values())
    optimizer = Optimizer(parameters, PPOConfig(optimizer="adamw", weight_decay=0.0, adam_eps=1e-8))
    fit = SFTFit(rows=len(pairs), skipped=skipped)
    best, kept = float("inf"), [p.detach().clone() for p in parameters]
    for epoch in range(epochs):
        shuffled = [train[i] for i in torch.randperm(len(train), generator=generator).tolist()]
        total, tokens = 0.0, 0
        for begin in range(0, len(shuffled), batch_size):
            loss = nll(backbone, [pairs[i] for i in shuffled[begin : begin + batch_size]])
            optimizer.zero_grad()
            loss.mean().backward()
            optimizer.clip(1.0)
            optimizer.step(lr)
            total, tokens = total + float(loss.detach().sum()), tokens + len(loss)
        fit.losses.append(total / tokens)
        with torch.no_grad():
            seen = val or train
            parts = [
                nll(backbone, [pairs[i] for i in seen[b : b + batch_size]]) for b in range(0, len(seen), batch_size)
            ]
            fit.val_losses.append(float(torch.cat(parts).mean()))
        if fit.val_losses[-1] < best:
            best, fit.best_epoch, kept = fit.val_losses[-1], epoch, [p.detach().clone() for p in parameters]
        if on_epoch is not None:
            on_epoch(epoch, fit)
    with torch.no_grad():
        for parameter, value in zip(parameters, kept, strict=True):
            parameter.copy_(value)
    return fit


def nll(backbone: Backbone, pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> Tensor:
    """[n]: -log p of every response token, prompts and padding left out."""
    rows = sequences(pairs, backbone.device)
    states, _ = response_states(backbone, rows)
    row, at = predicting(rows)
    return -score(states, backbone.head, rows.ids[row, at + 1]).log_prob


def sequences(pairs: Sequence[tuple[np.ndarray, np.ndarray]], device: torch.device) -> Sequences:
    """(prompt, response) tokens as rows."""
    lengths = [(len(prompt), len(response)) for prompt, response in pairs]
    ids = torch.zeros(len(pairs), max(p + r for p, r in lengths), dtype=torch.int64)
    for i, (prompt, response) in enumerate(pairs):
        ids[i, : sum(lengths[i])] = torch.from_numpy(np.concatenate([prompt, response]))
    prompt_length, response_length = (torch.tensor(x, device=device) for x in zip(*lengths, strict=True))
    return Sequences(ids.to(device), prompt_length, response_length)
