"""Supervised fine-tuning on demonstrations; only the tokens of the responses are learned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
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
    """The result of fine-tuning; losses are mean nats per response token, one per epoch."""

    losses: list[float] = field(default_factory=list[float])
    val_losses: list[float] = field(default_factory=list[float])
    best_epoch: int = 0
    rows: int = 0
    skipped: int = 0
    """Rows longer than the model's context."""

    def to_json(self) -> dict[str, Any]:
        """Return all fields, as JSON."""
        return asdict(self)


def demonstrations(
    rows: Sequence[tuple[Talk, str]], speech: Speech, limit: int | None
) -> tuple[list[tuple[np.ndarray, np.ndarray]], int]:
    """Return ((prompt, response) tokens, the number of rows that do not fit)."""
    pairs = [(speech.prompt(talk), speech.continuation(response)) for talk, response in rows]
    fitting = [pair for pair in pairs if len(pair[0]) and (limit is None or len(pair[0]) + len(pair[1]) <= limit)]
    if not fitting:
        raise DataError(f"none of {len(rows)} demonstrations fits into the model's {limit} positions")
    return fitting, len(pairs) - len(fitting)


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
    """Fine-tune on demonstrations, and leave the weights of the epoch with the lowest held-out loss.

    Args:
        backbone: The model; what learns is its own setting.
        rows: (prompt, response) pairs.
        speech: The tokenizer.
        epochs: Passes over the rows.
        batch_size: Rows per gradient step.
        lr: Learning rate of AdamW.
        validation: Share of rows that is held out, drawn at random.
        seed: Seed for the split and the shuffling.
        on_epoch: Called with (epoch, result so far) after each epoch.
    """
    pairs, skipped = demonstrations(rows, speech, backbone.context_length)
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(pairs), generator=generator).tolist()
    # A single row cannot be split.
    held = round(validation * len(pairs)) if len(pairs) > 1 else 0
    val, train = order[:held], order[held:]
    parameters = list(backbone.trained().values())
    # AdamW with torch's eps; the default of PPOConfig is PPO's 1e-5.
    optimizer = Optimizer(parameters, PPOConfig(optimizer="adamw", weight_decay=0.0, adam_eps=1e-8))
    fit = SFTFit(rows=len(pairs), skipped=skipped)
    best, best_weights = float("inf"), [p.detach().clone() for p in parameters]
    for epoch in range(epochs):
        shuffled = [train[i] for i in torch.randperm(len(train), generator=generator).tolist()]
        total, tokens = 0.0, 0
        for begin in range(0, len(shuffled), batch_size):
            loss = nll(backbone, [pairs[i] for i in shuffled[begin : begin + batch_size]])
            optimizer.zero_grad()
            loss.mean().backward()
            # The same limit as `LMConfig.ppo`.
            optimizer.clip(1.0)
            optimizer.step(lr)
            total, tokens = total + float(loss.detach().sum()), tokens + len(loss)
        fit.losses.append(total / tokens)
        with torch.no_grad():
            rated = val or train
            begins = range(0, len(rated), batch_size)
            parts = [nll(backbone, [pairs[i] for i in rated[b : b + batch_size]]) for b in begins]
            fit.val_losses.append(float(torch.cat(parts).mean()))
        if fit.val_losses[-1] < best:
            best, fit.best_epoch = fit.val_losses[-1], epoch
            best_weights = [p.detach().clone() for p in parameters]
        if on_epoch is not None:
            on_epoch(epoch, fit)
    with torch.no_grad():
        for parameter, value in zip(parameters, best_weights, strict=True):
            parameter.copy_(value)
    return fit


def nll(backbone: Backbone, pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> Tensor:
    """Return -log p of every response token, [n]; prompts and padding are left out."""
    rows = sequences(pairs, backbone.device)
    states, _ = response_states(backbone, rows)
    row, position = predicting(rows)
    return -score(states, backbone.head, rows.ids[row, position + 1]).log_prob


def sequences(pairs: Sequence[tuple[np.ndarray, np.ndarray]], device: torch.device) -> Sequences:
    """Return (prompt, response) tokens as rows."""
    lengths = [(len(prompt), len(response)) for prompt, response in pairs]
    ids = torch.zeros(len(pairs), max(p + r for p, r in lengths), dtype=torch.int64)
    for i, (prompt, response) in enumerate(pairs):
        ids[i, : sum(lengths[i])] = torch.from_numpy(np.concatenate([prompt, response]))
    prompt_length, response_length = (torch.tensor(x, device=device) for x in zip(*lengths, strict=True))
    return Sequences(ids.to(device), prompt_length, response_length)
