"""KV cache for rows of different lengths, so that a finished row can be replaced by a new prompt."""

from __future__ import annotations

import torch
from torch import Tensor


class Prefill:
    """Collects the keys and values of one pass over prompts, per layer."""

    def __init__(self) -> None:
        self.keys: dict[int, Tensor] = {}
        self.values: dict[int, Tensor] = {}

    def update(self, key: Tensor, value: Tensor, layer: int, *others: object, **more: object) -> tuple[Tensor, Tensor]:
        """Store keys and values; transformers' attention calls this."""
        self.keys[layer], self.values[layer] = key, value
        return key, value

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Return 0: prompts have no past."""
        return 0


class Slots:
    """Keys and values per layer, [rows, heads, length, size]; `at` [rows] is the position of each row's next token."""

    def __init__(self, rows: int, length: int) -> None:
        self.rows, self.length = rows, length
        self.keys: dict[int, Tensor] = {}
        self.values: dict[int, Tensor] = {}
        self.at = torch.zeros(rows, dtype=torch.int64)
        self.filled = 0
        """Length of the longest row, including the token that is being read."""

    def fill(self, rows: Tensor, prompts: Prefill, lengths: Tensor) -> None:
        """Copy new prompts into rows. The padding behind a prompt is masked until it is overwritten."""
        for layer, key in prompts.keys.items():
            # Allocated by the first prompts, which show the number and size of the heads.
            if layer not in self.keys:
                shape = (self.rows, key.shape[1], self.length, key.shape[3])
                self.keys[layer], self.values[layer] = key.new_zeros(shape), key.new_zeros(shape)
            self.keys[layer][rows, :, : key.shape[2]] = key
            self.values[layer][rows, :, : key.shape[2]] = prompts.values[layer]
        self.at[rows] = lengths

    def begin(self) -> tuple[Tensor, Tensor | None]:
        """Return (position [rows, 1], mask [rows, 1, 1, filled]) for reading one more token in every row.

        The mask is None if all rows are equally long: then attention needs none, which is faster.
        """
        self.filled = int(self.at.max()) + 1
        device = next(iter(self.keys.values())).device
        self._at = self.at.to(device)
        self._level = int(self.at.min()) + 1 == self.filled
        if self._level:
            return self._at.unsqueeze(1), None
        self._row = torch.arange(self.rows, device=device)
        mask = torch.arange(self.filled, device=device) <= self._at.unsqueeze(1)
        return self._at.unsqueeze(1), mask[:, None, None]

    def update(self, key: Tensor, value: Tensor, layer: int, *others: object, **more: object) -> tuple[Tensor, Tensor]:
        """Store one token per row and return all keys and values; transformers' attention calls this."""
        # A slice is written faster than an index per row.
        if self._level:
            self.keys[layer][:, :, self.filled - 1] = key[:, :, 0]
            self.values[layer][:, :, self.filled - 1] = value[:, :, 0]
        else:
            self.keys[layer][self._row, :, self._at] = key[:, :, 0]
            self.values[layer][self._row, :, self._at] = value[:, :, 0]
        return self.keys[layer][:, :, : self.filled], self.values[layer][:, :, : self.filled]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Return the length of the past; transformers calls this although positions are passed."""
        return self.filled - 1

    def keep(self, rows: Tensor) -> None:
        """Drop all rows but these."""
        for layer in self.keys:
            self.keys[layer], self.values[layer] = self.keys[layer][rows], self.values[layer][rows]
        self.at, self.rows = self.at[rows.cpu()], len(rows)
