"""Connect Four and smaller variants for many boards in parallel, with two bitboards per board.

Cell (row, column) is bit column · (rows + 1) + row. The bit above each column stays empty, so that a line that is found
by shifting never wraps from the top of one column to the bottom of the next.
"""

from __future__ import annotations

import numpy as np

from surefoot.data.spaces import Box, Discrete
from surefoot.errors import ConfigError, EnvError

_ONE = np.uint64(1)


class Connect:
    """A `Game`: stones fall into columns; `line` of them in a row, column or diagonal win; a full board is a draw.

    A state is [2, n] uint64: the stones of the player to move, and those of the opponent. Both players see the board
    from their side, so one policy can play both.

    Args:
        rows: Height of the board; (rows + 1) · columns must be at most 64.
        columns: Width of the board; an action is a column.
        line: Stones in a line that win.
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
        self._obs_bits = np.concatenate((cells.ravel(), 64 + cells.ravel()))
        self._bottom = _ONE << np.arange(0, height * columns, height, dtype=np.uint64)
        self._top = self._bottom << np.uint64(rows - 1)
        self._full = np.bitwise_or.reduce(_ONE << self._cells)

    def start(self, n: int) -> np.ndarray:
        """Return n empty boards."""
        return np.zeros((2, n), np.uint64)

    def mask(self, state: np.ndarray) -> np.ndarray:
        """Return the columns that are not full, [n, columns] bool; all True on a full board, where nobody moves."""
        stones = state[0] | state[1]
        free = (stones[:, None] & self._top) == 0
        return free | (stones == self._full)[:, None]

    def observe(self, state: np.ndarray) -> np.ndarray:
        """Return [n, 2 · cells] float32: the mover's stones, then the opponent's, row by row from the bottom."""
        rows = np.ascontiguousarray(state.T, "<u8").view(np.uint8)
        bits = np.unpackbits(rows, axis=1, bitorder="little")
        return bits[:, self._obs_bits].astype(np.float32)

    def play(self, state: np.ndarray, action: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the boards from the other player's side, [n] bool over, and the mover's score [n] float64.

        The score is 1 for a win and 0 for a draw or a game that continues: no move loses the game for its player.
        """
        mover, other = state
        stones = mover | other
        column = np.asarray(action, np.int64)
        outside = (column < 0) | (column >= self.columns)
        refused = outside | ((stones & self._top[np.where(outside, 0, column)]) > 0)
        if refused.any():
            bad = int(refused.argmax())
            raise EnvError(
                f"column {column[bad]} of board {bad} is full or outside; open columns are "
                f"{np.flatnonzero(self.mask(state)[bad]).tolist()}"
            )
        # Adding the bottom bit to a column's stones carries to its first free cell.
        stone = (stones + self._bottom[column]) & ~stones & (self._bottom[column] * np.uint64((1 << self.rows) - 1))
        mover = mover | stone
        won = self._has_line(mover)
        over = won | ((mover | other) == self._full)
        return np.stack((other, mover)), over, won.astype(np.float64)

    def picture(self, state: np.ndarray, board: int = 0) -> str:
        """Return one board as text, the top row first; X moves next."""
        mover, other = (int(x) for x in state[:, board])
        lines = [
            "".join("X" if mover >> int(bit) & 1 else "O" if other >> int(bit) & 1 else "." for bit in row)
            for row in self._cells.reshape(self.rows, self.columns)
        ]
        return "\n".join(reversed(lines))

    def _has_line(self, stones: np.ndarray) -> np.ndarray:
        won = np.zeros(len(stones), np.bool_)
        for shift in self._shifts:
            line = stones
            for k in range(1, self.line):
                line = line & (stones >> (shift * np.uint64(k)))
            won |= line > 0
        return won
