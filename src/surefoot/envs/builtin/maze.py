"""Grid mazes that pay only at the goal: what is hard in them is not to move but to come by the first reward at all.

They are tasks for `streams.Streams`. A walk without a plan does not get to the end of either within its time limit,
however long one waits.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from surefoot.data.spaces import Box, Discrete
from surefoot.envs.api import World
from surefoot.envs.builtin.draw import BLACK, BLUE, GREEN, GREY, RED, Canvas
from surefoot.envs.builtin.streams import Moved, Task, maker
from surefoot.errors import ConfigError

WINDING = """
#############
#S#.......#.#
#.###.###.#.#
#...#.#.#...#
###.#.#.###.#
#.#...#.....#
#.#####.#####
#.......#...#
#.#########.#
#...#.......#
###.#.#####.#
#.....#....G#
#############
"""
"""52 steps from S to G, eight dead ends."""

MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))
"""(rows down, columns right) of the actions 0 up, 1 right, 2 down, 3 left."""


class Maze(Task):
    """Walk from S to G; `#` is a wall, and walking into one leaves you where you are. G pays 1 and ends it.

    The observation is a one-hot of the row beside a one-hot of the column. A return is 1 or 0, so the mean return is
    the rate of success.
    """

    action = Discrete(len(MOVES))

    def __init__(self, layout: str = WINDING, *, limit: int = 200) -> None:
        self.layout = layout.split()
        self.height, self.width = len(self.layout), max(map(len, self.layout), default=0)
        self.max_episode_steps = limit
        self.observation = Box((self.height + self.width,), 0.0, 1.0)
        self.floor = self._floor()
        self.first, self.goal = self._only("S"), self._only("G")
        cells = np.arange(self.height * self.width)
        steps = np.array([down * self.width + right for down, right in MOVES])
        # The edge is wall, so a step off the sheet never begins on the floor; clip keeps the table's rows legal.
        there = (cells[:, None] + steps).clip(0, len(cells) - 1)
        self._after = np.where(self.floor[there], there, cells[:, None])
        """[cells, 4]: the cell that follows a cell and an action."""
        row, column = np.divmod(cells, self.width)
        seen = row[:, None] == np.arange(self.height), column[:, None] == np.arange(self.width)
        self._look = np.hstack(seen).astype(np.float32)
        """[cells, height + width]: what is seen from each cell."""

    @property
    def shortest(self) -> int:
        """Steps of the shortest way from S to G."""
        return int(self.distance()[self.first])

    def distance(self) -> np.ndarray:
        """[cells] int64: steps from each cell to G; -1 where no way leads there. A cell is row · width + column."""
        steps = np.full(self.height * self.width, -1)
        steps[self.goal] = 0
        edge, gone = np.array([self.goal]), 0
        while len(edge):
            gone += 1
            # Moves can be taken back, so who is one step from the edge is also who can step onto it.
            near = np.unique(self._after[edge])
            edge = near[steps[near] < 0]
            steps[edge] = gone
        return steps

    def where(self, obs: np.ndarray) -> np.ndarray:
        """[n, 2] int64: the row and the column that n observations show."""
        return np.stack([obs[:, : self.height].argmax(axis=1), obs[:, self.height :].argmax(axis=1)], axis=1)

    def start(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """S."""
        return np.full((1, n), self.first)

    def advance(self, state: np.ndarray, action: np.ndarray, rng: np.random.Generator) -> Moved:
        """One cell, or none where there is a wall."""
        after = self._after[state[0], action]
        arrived = after == self.goal
        return after[None], arrived.astype(np.float64), arrived

    def observe(self, state: np.ndarray) -> np.ndarray:
        """Row and column."""
        return self._look[state[0]]

    def draw(self, state: np.ndarray) -> np.ndarray:
        """The maze from above: S red, G green, the walker blue."""
        side = max(self.width, self.height * 4 / 3)
        canvas = Canvas(left=self.width / 2 - side / 2, right=self.width / 2 + side / 2, middle=self.height / 2)

        def fill(cell: int, colour: tuple[int, int, int]) -> None:
            row, column = divmod(cell, self.width)
            canvas.box((column, self.height - row - 1), (column + 1, self.height - row), colour)

        canvas.box((0, 0), (self.width, self.height), BLACK)
        for cell in np.flatnonzero(self.floor):
            fill(int(cell), (236, 238, 240))
        fill(self.first, RED)
        fill(self.goal, GREEN)
        row, column = divmod(int(state[0]), self.width)
        canvas.disc((column + 0.5, self.height - row - 0.5), 0.42, GREY)
        canvas.disc((column + 0.5, self.height - row - 0.5), 0.36, BLUE)
        return canvas.picture()

    def _floor(self) -> np.ndarray:
        """[cells] bool: where one can stand."""
        rows = [row.ljust(self.width, "#") for row in self.layout]
        if self.height < 3 or any(sign not in "#.SG" for row in rows for sign in row):
            raise ConfigError(f"a maze is three or more rows of '#', '.', one 'S' and one 'G'; got {self.layout}")
        floor = np.array([[sign != "#" for sign in row] for row in rows])
        if floor[[0, -1]].any() or floor[:, [0, -1]].any():
            raise ConfigError(
                "the maze is open at its edge; every cell of its first and last row and column must be '#'"
            )
        return floor.ravel()

    def _only(self, sign: str) -> int:
        """The one cell that holds `sign`."""
        at = [row * self.width + line.index(sign) for row, line in enumerate(self.layout) if sign in line]
        if sum(line.count(sign) for line in self.layout) != 1:
            raise ConfigError(f"the maze needs exactly one {sign!r}")
        return at[0]


class LongMaze(Maze):
    """Square rooms on a grid, to be walked in turns: one row to the right, the next back to the left, each by one door.

    S is in the first room, G is the way out of the last; the sub-goal that helps is the next room. The way turns, so that
    a policy that happens to lean to one side does not get through by leaning.
    """

    def __init__(self, rows: int = 3, columns: int = 3, size: int = 4, *, limit: int = 400) -> None:
        if rows < 1 or columns < 1 or size < 2:
            raise ConfigError(
                f"rows is {rows}, columns {columns} and size {size}; there must be 1 or more of each, 2 cells wide or more"
            )
        self.rooms = rows * columns
        layout, self._room = _rooms(rows, columns, size)
        super().__init__(layout, limit=limit)
        corners = np.array(_way(rows, columns)) * (size + 1)
        self.landmarks = np.vstack([corners + (size + 1) / 2, np.divmod(self.goal, self.width)])
        """[rooms + 1, 2]: row and column of the middle of each room, and of G."""

    def room(self, obs: np.ndarray) -> np.ndarray:
        """[n] int64: the room that n observations show, from 0 to `rooms` at G; a door belongs to the room behind it."""
        row, column = self.where(obs).T
        return self._room[row, column]

    def nearby(self, place: np.ndarray) -> np.ndarray:
        """[n, rooms + 1] bool: from n places (row, column), the landmarks of that room and of those before and behind."""
        row, column = place.astype(np.int64).T
        return np.abs(self._room[row, column][:, None] - np.arange(self.rooms + 1)) <= 1


def _rooms(rows: int, columns: int, size: int) -> tuple[str, np.ndarray]:
    """The layout, and the number of the room of each cell [height, width]."""
    sheet = np.full((rows * (size + 1) + 2, columns * (size + 1) + 1), "#")
    number = np.zeros(sheet.shape, np.int64)
    way = _way(rows, columns)
    for i, (r, c) in enumerate(way):
        top, left = r * (size + 1) + 1, c * (size + 1) + 1
        sheet[top : top + size, left : left + size] = "."
        number[top : top + size, left : left + size] = i
        if i + 1 < len(way) and way[i + 1][0] == r:
            door = top if i % 2 else top + size - 1, left + size if r % 2 == 0 else left - 1
        else:
            door = top + size, left + size - 1 if r % 2 == 0 else left
        sheet[door] = "." if i + 1 < len(way) else "G"
        number[door] = i + 1
    sheet[1, 1] = "S"
    return "\n".join("".join(row) for row in sheet), number


def _way(rows: int, columns: int) -> list[tuple[int, int]]:
    """Rooms as (row, column) in the order in which one gets to them."""
    return [(r, c if r % 2 == 0 else columns - 1 - c) for r in range(rows) for c in range(columns)]


MAZES: dict[str, Callable[[int], World]] = {
    name: maker(name, task) for name, task in {"surefoot/Maze-v0": Maze, "surefoot/LongMaze-v0": LongMaze}.items()
}
"""Constructors that take the number of streams, by id."""
