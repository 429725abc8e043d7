"""Prompts and responses as rows a model can read: little padding, and only the states that predict a response."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from surefoot.core.batch import Batch
from surefoot.lm.policy.backbone import Backbone

SHORTEST = 0.75
"""Rows share a bucket with longer ones down to this share of their length."""
PACK = 4096
"""Tokens in one packed row at most: its attention mask has their square."""


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
        """[B]: tokens the model has to read; the last one of a response predicts nothing."""
        return self.prompt_length + self.response_length - 1


def sequences_of(batch: Batch) -> Sequences:
    """The rows behind a batch: its context is the prompt, its actions are the response."""
    prompt, length = batch.context["prompt"].long(), batch.context["prompt_length"].long()
    steps = batch.action.shape[0]
    counted = batch.valid if batch.valid is not None else torch.ones_like(batch.action, dtype=torch.bool)
    return join(prompt, length, batch.action.T.long(), counted.sum(0).clamp(max=steps))


def join(prompt: Tensor, prompt_length: Tensor, response: Tensor, response_length: Tensor) -> Sequences:
    """[B, P] and [B, T], each padded on the right, as [B, P + T] without a gap between them."""
    ids = torch.cat([prompt, torch.zeros_like(response)], 1)
    place = prompt_length.unsqueeze(1) + torch.arange(response.shape[1], device=ids.device)
    return Sequences(ids.scatter(1, place, response), prompt_length, response_length)


def predicting(rows: Sequences) -> tuple[Tensor, Tensor]:
    """(row, position) of every state that predicts a response token, row by row, in order."""
    steps = int(rows.response_length.max()) if len(rows.response_length) else 0
    step = torch.arange(steps, device=rows.ids.device)
    row, at = (step < rows.response_length.unsqueeze(1)).nonzero(as_tuple=True)
    return row, rows.prompt_length[row] - 1 + at


def buckets(lengths: Tensor) -> list[Tensor]:
    """Row numbers in groups of similar length, longest first."""
    order = lengths.argsort(descending=True, stable=True)
    groups: list[list[int]] = []
    for row in order.tolist():
        size = int(lengths[row])
        if size < 1:
            continue
        if not groups or size < SHORTEST * int(lengths[groups[-1][0]]):
            groups.append([])
        groups[-1].append(row)
    return [torch.tensor(group, device=lengths.device) for group in groups]


def response_states(
    backbone: Backbone, rows: Sequences, *, trunk: Tensor | None = None, packed: bool = False
) -> tuple[Tensor, Tensor | None]:
    """[n, width]: the states that predict response tokens, in the order of `predicting`.

    With `trunk` [B, L, width] the layers that do not learn are not run. Without it, and if there are such layers, their
    output comes back as the second result.
    """
    if packed and trunk is None:
        return _packed_states(backbone, rows), None
    below = None
    if trunk is None and backbone.caches_trunk and len(rows.ids):
        size = (len(rows.ids), int(rows.read.max()), backbone.width)
        below = torch.zeros(size, dtype=backbone.dtype, device=rows.ids.device)
    states: list[Tensor] = []
    numbers: list[Tensor] = []
    index = torch.full(rows.ids.shape, -1, device=rows.ids.device)
    row, at = predicting(rows)
    index[row, at] = torch.arange(len(row), device=row.device)
    for group in buckets(rows.read):
        longest = int(rows.read[group].max())
        ids = rows.ids[group, :longest]
        with backbone.catching_trunk() as caught:
            states_here = backbone.hidden(ids, trunk=None if trunk is None else trunk[group, :longest])
        if below is not None:
            below[group, :longest] = caught[0]
        number = index[group, :longest]
        mine = number >= 0
        states.append(states_here[mine])
        numbers.append(number[mine])
    if not states:
        return torch.zeros(0, backbone.width, dtype=backbone.dtype, device=rows.ids.device), below
    back = torch.cat(numbers).argsort()
    return torch.cat(states)[back], below


def _packed_states(backbone: Backbone, rows: Sequences) -> Tensor:
    """The same with several rows laid end to end in one; a token sees only its own row."""
    found: list[Tensor] = []
    begin = 0
    lengths = rows.read.tolist()
    while begin < len(lengths):
        end, total = begin, 0
        while end < len(lengths) and (end == begin or total + lengths[end] <= PACK):
            total, end = total + lengths[end], end + 1
        found.append(_one_pack(backbone, rows, begin, end))
        begin = end
    return torch.cat(found) if found else rows.ids.new_zeros(0, backbone.width, dtype=backbone.dtype)


def _one_pack(backbone: Backbone, rows: Sequences, begin: int, end: int) -> Tensor:
    device = rows.ids.device
    part = Sequences(rows.ids[begin:end], rows.prompt_length[begin:end], rows.response_length[begin:end])
    place = torch.arange(rows.ids.shape[1], device=device)
    row, at = (place < part.read.clamp(min=0).unsqueeze(1)).nonzero(as_tuple=True)
    sees = (row.unsqueeze(1) == row) & (at.unsqueeze(1) >= at)
    states = backbone.hidden(part.ids[row, at].unsqueeze(0), position=at.unsqueeze(0), mask=sees[None, None])[0]
    number = torch.full(part.ids.shape, 0, device=device)
    number[row, at] = torch.arange(len(row), device=device)
    return states[number[predicting(part)]]
