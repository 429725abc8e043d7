"""Connect Four and its smaller sisters for many boards at once, two bitboards a board.

Cell (row, column) is bit column · (rows + 1) + row; the bit above each column stays empty, so that a line found by
shifting never runs from the top of one column into the bottom of the next.
"""

from __future__ import annotations

import numpy as np

from surefoot.data.spaces import Box, Discrete
from surefoot.errors import ConfigError, EnvError

_ONE = np.uint64(1)


class Connect:
    """Stones fall into columns; `line` of them in a row, column or diagonal win; a full board is a draw.

    A state is [2, n] uint64: the stones of whoever moves next, and those of the other. Players see the board from their
    own side, so one policy can sit on both.
    """

    def __init__(self, rows: int = 6, columns: int = 7, line: int = 4) -> None:
        if rows < 1 or columns < 1 or (rows + 1) * columns > 64 or not 2 <= line <= max(rows, columns):
            raise ConfigError(
                f"rows is {rows}, columns {columns} and line {line}; (rows + 1) · columns must be at most 64 and a line "
                "must fit on the board"
            )
        self.rows, self.columns, self.line = rows, columns, line
        self.observation = Box((2 * rows * columns,), 0.0, 1.0)
        self.action = Discrete(columns)
        height = rows + 1
        self._shifts = tuple(np.uint64(step) for step in (1, height, height - 1, height + 1) if step)
        cells = np.arange(rows)[:, None] + height * np.arange(columns)[None, :]
        self._cells = cells.ravel().astype(np.uint64)
        self._seen = np.concatenate((cells.ravel(), 64 + cells.ravel()))
        self._bottom = _ONE << np.arange(0, height * columns, height, dtype=np.uint64)
        self._top = self._bottom << np.uint64(rows - 1)
        self._full = np.bitwise_or.reduce(_ONE << self._cells)

    def start(self, n: int) -> np.ndarray:
        """n empty boards."""
        return np.zeros((2, n), np.uint64)

    def mask(self, state: np.ndarray) -> np.ndarray:
        """[n, columns] bool: where a stone still fits; on a board that is full, everywhere, as nobody moves there."""
        taken = state[0] | state[1]
        free = (taken[:, None] & self._top) == 0
        return free | (taken == self._full)[:, None]

    def observe(self, state: np.ndarray) -> np.ndarray:
        """[n, 2 · cells] float32: my stones, then the other's, row by row from the bottom."""
        rows = np.ascontiguousarray(state.T, "<u8").view(np.uint8)
        bits = np.unpackbits(rows, axis=1, bitorder="little")
        return bits[:, self._seen].astype(np.float32)

    def play(self, state: np.ndarray, action: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The boards after a move, seen by the other player; [n] bool over; [n] float64 score of who moved.

        A score is 1 for a win and 0 for a draw or a game that goes on: nobody loses by a move of their own.
        """
        mine, other = state
        taken = mine | other
        column = np.asarray(action, np.int64)
        outside = (column < 0) | (column >= self.columns)
        refused = outside | ((taken & self._top[np.where(outside, 0, column)]) > 0)
        if refused.any():
            bad = int(refused.argmax())
            raise EnvError(
                f"column {column[bad]} of board {bad} takes no stone; open are {np.flatnonzero(self.mask(state)[bad]).tolist()}"
            )
        # Adding the bottom bit to a column's stones carries to its first free cell.
        stone = (taken + self._bottom[column]) & ~taken & (self._bottom[column] * np.uint64((1 << self.rows) - 1))
        mine = mine | stone
        won = self._has_line(mine)
        over = won | ((mine | other) == self._full)
        return np.stack((other, mine)), over, won.astype(np.float64)

    def picture(self, state: np.ndarray, board: int = 0) -> str:
        """A board in letters, the top row first: X moves next."""
        mine, other = (int(x) for x in state[:, board])
        lines = [
            "".join("X" if mine >> int(bit) & 1 else "O" if other >> int(bit) & 1 else "." for bit in row)
            for row in self._cells.reshape(self.rows, self.columns)
        ]
        return "\n".join(reversed(lines))

    def _has_line(self, stones: np.ndarray) -> np.ndarray:
        found = np.zeros(len(stones), np.bool_)
        for shift in self._shifts:
            line = stones
            for k in range(1, self.line):
                line = line & (stones >> (shift * np.uint64(k)))
            found |= line > 0
        return found
