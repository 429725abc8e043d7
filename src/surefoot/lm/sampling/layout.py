"""Lays prompts and responses out in rows with little padding, and selects the states that predict a response."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from surefoot.core.batch import Batch
from surefoot.lm.policy.backbone import Backbone

# Rows share a bucket down to this share of the longest: at most a quarter of a bucket is padding. Larger means less
# padding but more passes of the model.
SHORTEST = 0.75
# Tokens in one packed row: the attention mask has their square, 16 MB.
PACK = 4096


@dataclass(frozen=True, slots=True)
class Sequences:
    """B rows of prompt and response, padded on the right."""

    ids: Tensor
    """[B, L]"""
    prompt_length: Tensor
    """[B]"""
    response_length: Tensor
    """[B]"""

    @property
    def read(self) -> Tensor:
        """Return the number of tokens to read, [B]; the last token of a response predicts nothing."""
        return self.prompt_length + self.response_length - 1


def sequences_of(batch: Batch) -> Sequences:
    """Return the rows of a batch: its context is the prompt, its actions are the response."""
    prompt, length = batch.context["prompt"].long(), batch.context["prompt_length"].long()
    steps = batch.action.shape[0]
    # Padding is at the end of a column, so the count of valid steps is the length.
    counted = batch.valid if batch.valid is not None else torch.ones_like(batch.action, dtype=torch.bool)
    return join(prompt, length, batch.action.T.long(), counted.sum(0).clamp(max=steps))


def join(prompt: Tensor, prompt_length: Tensor, response: Tensor, response_length: Tensor) -> Sequences:
    """Return [B, P] prompts and [B, T] responses, padded on the right, as [B, P + T] rows without a gap."""
    ids = torch.cat([prompt, torch.zeros_like(response)], 1)
    position = prompt_length.unsqueeze(1) + torch.arange(response.shape[1], device=ids.device)
    return Sequences(ids.scatter(1, position, response), prompt_length, response_length)


def predicting(rows: Sequences) -> tuple[Tensor, Tensor]:
    """Return (row, position) of every state that predicts a response token, in order."""
    steps = int(rows.response_length.max()) if len(rows.response_length) else 0
    step = torch.arange(steps, device=rows.ids.device)
    row, token = (step < rows.response_length.unsqueeze(1)).nonzero(as_tuple=True)
    return row, rows.prompt_length[row] - 1 + token


def buckets(lengths: Tensor) -> list[Tensor]:
    """Return row numbers in groups of similar length, longest first."""
    order = lengths.argsort(descending=True, stable=True)
    groups: list[list[int]] = []
    for row in order.tolist():
        size = int(lengths[row])
        # Responses that are left out have no tokens to read.
        if size < 1:
            continue
        if not groups or size < SHORTEST * int(lengths[groups[-1][0]]):
            groups.append([])
        groups[-1].append(row)
    return [torch.tensor(group, device=lengths.device) for group in groups]


def response_states(
    backbone: Backbone, rows: Sequences, *, trunk: Tensor | None = None, packed: bool = False
) -> tuple[Tensor, Tensor | None]:
    """Return (the states that predict response tokens [n, width], in the order of `predicting`, trunk or None).

    With `trunk` [B, L, width] the frozen lower layers are skipped. Without it, and if there are such layers, their output
    is the second result.
    """
    if packed and trunk is None:
        return _packed_states(backbone, rows), None
    below = None
    if trunk is None and backbone.caches_trunk and len(rows.ids):
        size = (len(rows.ids), int(rows.read.max()), backbone.trunk_width)
        below = torch.zeros(size, dtype=backbone.dtype, device=rows.ids.device)
    states: list[Tensor] = []
    numbers: list[Tensor] = []
    index = torch.full(rows.ids.shape, -1, device=rows.ids.device)
    row, position = predicting(rows)
    index[row, position] = torch.arange(len(row), device=row.device)
    for group in buckets(rows.read):
        longest = int(rows.read[group].max())
        ids = rows.ids[group, :longest]
        with backbone.catching_trunk() as caught:
            hidden = backbone.hidden(ids, trunk=None if trunk is None else trunk[group, :longest])
        if below is not None:
            below[group, :longest] = caught[0]
        number = index[group, :longest]
        predicts = number >= 0
        states.append(hidden[predicts])
        numbers.append(number[predicts])
    if not states:
        return torch.zeros(0, backbone.width, dtype=backbone.dtype, device=rows.ids.device), below
    order = torch.cat(numbers).argsort()
    return torch.cat(states)[order], below


def _packed_states(backbone: Backbone, rows: Sequences) -> Tensor:
    """Return the same states with several rows packed into one; a token attends only to its row."""
    packs: list[Tensor] = []
    begin = 0
    lengths = rows.read.tolist()
    while begin < len(lengths):
        end, total = begin, 0
        while end < len(lengths) and (end == begin or total + lengths[end] <= PACK):
            total, end = total + lengths[end], end + 1
        packs.append(_one_pack(backbone, rows, begin, end))
        begin = end
    return torch.cat(packs) if packs else rows.ids.new_zeros(0, backbone.width, dtype=backbone.dtype)


def _one_pack(backbone: Backbone, rows: Sequences, begin: int, end: int) -> Tensor:
    device = rows.ids.device
    part = Sequences(rows.ids[begin:end], rows.prompt_length[begin:end], rows.response_length[begin:end])
    columns = torch.arange(rows.ids.shape[1], device=device)
    row, position = (columns < part.read.clamp(min=0).unsqueeze(1)).nonzero(as_tuple=True)
    mask = (row.unsqueeze(1) == row) & (position.unsqueeze(1) >= position)
    ids = part.ids[row, position].unsqueeze(0)
    states = backbone.hidden(ids, position=position.unsqueeze(0), mask=mask[None, None])[0]
    number = torch.full(part.ids.shape, 0, device=device)
    number[row, position] = torch.arange(len(row), device=device)
    return states[number[predicting(part)]]
