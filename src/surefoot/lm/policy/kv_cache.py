"""Keys and values of many rows, each with its own length, so that a finished row can be replaced by a fresh one."""

from __future__ import annotations

import torch
from torch import Tensor


class Prefill:
    """Takes the keys and values of one pass over prompts, layer by layer."""

    def __init__(self) -> None:
        self.keys: dict[int, Tensor] = {}
        self.values: dict[int, Tensor] = {}

    def update(self, key: Tensor, value: Tensor, layer: int, *rest: object, **more: object) -> tuple[Tensor, Tensor]:
        """As transformers' attention calls it."""
        self.keys[layer], self.values[layer] = key, value
        return key, value

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Nothing came before."""
        return 0


class Slots:
    """[rows, heads, length, size] keys and values a layer. `at` [rows] says where each row's next token goes."""

    def __init__(self, rows: int, length: int) -> None:
        self.rows, self.length = rows, length
        self.keys: dict[int, Tensor] = {}
        self.values: dict[int, Tensor] = {}
        self.at = torch.zeros(rows, dtype=torch.int64)
        self.seen = 0
        """The longest row, the token that is being read included."""

    def fill(self, rows: Tensor, prompts: Prefill, lengths: Tensor) -> None:
        """Put fresh prompts into rows. What a right-padded prompt left behind its end is overwritten, never looked at."""
        for layer, key in prompts.keys.items():
            if layer not in self.keys:
                shape = (self.rows, key.shape[1], self.length, key.shape[3])
                self.keys[layer], self.values[layer] = key.new_zeros(shape), key.new_zeros(shape)
            self.keys[layer][rows, :, : key.shape[2]] = key
            self.values[layer][rows, :, : key.shape[2]] = prompts.values[layer]
        self.at[rows] = lengths

    def begin(self) -> tuple[Tensor, Tensor | None]:
        """(position [rows, 1], mask [rows, 1, 1, seen]) for reading one more token in every row.

        No mask where all rows are equally long: then every key is seen.
        """
        self.seen = int(self.at.max()) + 1
        device = next(iter(self.keys.values())).device
        self._at = self.at.to(device)
        self._level = int(self.at.min()) + 1 == self.seen
        if self._level:
            return self._at.unsqueeze(1), None
        self._row = torch.arange(self.rows, device=device)
        mask = torch.arange(self.seen, device=device) <= self._at.unsqueeze(1)
        return self._at.unsqueeze(1), mask[:, None, None]

    def update(self, key: Tensor, value: Tensor, layer: int, *rest: object, **more: object) -> tuple[Tensor, Tensor]:
        """As transformers' attention calls it, with one token a row."""
        if self._level:
            self.keys[layer][:, :, self.seen - 1] = key[:, :, 0]
            self.values[layer][:, :, self.seen - 1] = value[:, :, 0]
        else:
            self.keys[layer][self._row, :, self._at] = key[:, :, 0]
            self.values[layer][self._row, :, self._at] = value[:, :, 0]
        return self.keys[layer][:, :, : self.seen], self.values[layer][:, :, : self.seen]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Positions are given, so nobody needs this; transformers asks all the same."""
        return self.seen - 1

    def keep(self, rows: Tensor) -> None:
        """Go on with these rows only."""
        for layer in self.keys:
            self.keys[layer], self.values[layer] = self.keys[layer][rows], self.values[layer][rows]
        self.at, self.rows = self.at[rows.cpu()], len(rows)
