"""Grid mazes with a reward only at the goal: the difficulty is to find the first reward at all.

A random walk practically never reaches the goal within the time limit. The mazes are tasks for `streams.Streams`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from surefoot.data.spaces import Box, Discrete
from surefoot.envs.api import World
from surefoot.envs.builtin.draw import BLACK, BLUE, GREEN, GREY, RED, Canvas
from surefoot.envs.builtin.streams import Task, Transition, maker
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
    """Walk from S to G; `#` is a wall, and walking into one does nothing. G pays 1 and ends the episode.

    The observation is a one-hot of the row followed by a one-hot of the column. The return is 1 or 0, so the mean return
    is the success rate.
    """

    action = Discrete(len(MOVES))

    def __init__(self, layout: str = WINDING, *, limit: int = 200) -> None:
        self.layout = layout.split()
        self.height, self.width = len(self.layout), max(map(len, self.layout), default=0)
        self.max_episode_steps = limit
        self.observation = Box((self.height + self.width,), 0.0, 1.0)
        self.floor = self._checked_floor()
        self.first, self.goal = self._only("S"), self._only("G")
        cells = np.arange(self.height * self.width)
        steps = np.array([down * self.width + right for down, right in MOVES])
        # The border is wall, so no step from a floor cell leaves the grid; clip keeps the rows of wall cells legal.
        target = (cells[:, None] + steps).clip(0, len(cells) - 1)
        self._after = np.where(self.floor[target], target, cells[:, None])
        """[cells, 4]: the next cell for a cell and an action."""
        row, column = np.divmod(cells, self.width)
        one_hots = row[:, None] == np.arange(self.height), column[:, None] == np.arange(self.width)
        self._obs = np.hstack(one_hots).astype(np.float32)
        """[cells, height + width]: the observation in each cell."""

    @property
    def shortest(self) -> int:
        """Steps of the shortest path from S to G."""
        return int(self.distance()[self.first])

    def distance(self) -> np.ndarray:
        """Return the steps from each cell (row · width + column) to G, [cells] int64; -1 where G cannot be reached."""
        steps = np.full(self.height * self.width, -1)
        steps[self.goal] = 0
        edge, distance = np.array([self.goal]), 0
        while len(edge):
            distance += 1
            # Every move can be reversed, so the cells one step from the edge are those that lead to it.
            near = np.unique(self._after[edge])
            edge = near[steps[near] < 0]
            steps[edge] = distance
        return steps

    def where(self, obs: np.ndarray) -> np.ndarray:
        """Return the row and column of n observations, [n, 2] int64."""
        return np.stack([obs[:, : self.height].argmax(axis=1), obs[:, self.height :].argmax(axis=1)], axis=1)

    def start(self, rng: np.random.Generator, n: int) -> np.ndarray:
        return np.full((1, n), self.first)

    def advance(self, state: np.ndarray, action: np.ndarray, rng: np.random.Generator) -> Transition:
        after = self._after[state[0], action]
        arrived = after == self.goal
        return after[None], arrived.astype(np.float64), arrived

    def observe(self, state: np.ndarray) -> np.ndarray:
        return self._obs[state[0]]

    def draw(self, state: np.ndarray) -> np.ndarray:
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

    def _checked_floor(self) -> np.ndarray:
        """Return which cells are not wall, [cells] bool; raise `ConfigError` for an invalid layout."""
        rows = [row.ljust(self.width, "#") for row in self.layout]
        if self.height < 3 or any(sign not in "#.SG" for row in rows for sign in row):
            raise ConfigError(
                f"the layout is {self.layout}; it must be three or more rows of '#' and '.', with one 'S' and one 'G'"
            )
        floor = np.array([[sign != "#" for sign in row] for row in rows])
        if floor[[0, -1]].any() or floor[:, [0, -1]].any():
            raise ConfigError(
                "the maze is open at its border; every cell of the first and last row and column must be '#'"
            )
        return floor.ravel()

    def _only(self, sign: str) -> int:
        """Return the only cell that holds `sign`."""
        cells = [row * self.width + line.index(sign) for row, line in enumerate(self.layout) if sign in line]
        if sum(line.count(sign) for line in self.layout) != 1:
            raise ConfigError(f"the maze needs exactly one {sign!r}")
        return cells[0]


class LongMaze(Maze):
    """Square rooms on a grid, connected by one door each: one row of rooms to the right, the next back to the left.

    S is in the first room, G is the exit of the last; the useful sub-goal is the next room. The path turns, so that a
    policy that prefers one direction by chance does not reach the goal that way.
    """

    def __init__(self, rows: int = 3, columns: int = 3, size: int = 4, *, limit: int = 400) -> None:
        if rows < 1 or columns < 1 or size < 2:
            raise ConfigError(f"rows is {rows}, columns {columns} and size {size}; they must be at least 1, 1 and 2")
        self.rooms = rows * columns
        layout, self._room = _rooms(rows, columns, size)
        super().__init__(layout, limit=limit)
        corners = np.array(_path(rows, columns)) * (size + 1)
        self.landmarks = np.vstack([corners + (size + 1) / 2, np.divmod(self.goal, self.width)])
        """[rooms + 1, 2]: row and column of the centre of each room, and of G."""

    def room(self, obs: np.ndarray) -> np.ndarray:
        """Return the room of n observations, [n] int64: 0 to `rooms` (at G). A door belongs to the room behind it."""
        row, column = self.where(obs).T
        return self._room[row, column]

    def nearby(self, place: np.ndarray) -> np.ndarray:
        """Return the landmarks of each place's room and of the rooms before and after it, [n, rooms + 1] bool."""
        row, column = place.astype(np.int64).T
        return np.abs(self._room[row, column][:, None] - np.arange(self.rooms + 1)) <= 1


def _rooms(rows: int, columns: int, size: int) -> tuple[str, np.ndarray]:
    """Return the layout, and the room number of each cell, [height, width]."""
    sheet = np.full((rows * (size + 1) + 2, columns * (size + 1) + 1), "#")
    number = np.zeros(sheet.shape, np.int64)
    path = _path(rows, columns)
    for i, (r, c) in enumerate(path):
        top, left = r * (size + 1) + 1, c * (size + 1) + 1
        sheet[top : top + size, left : left + size] = "."
        number[top : top + size, left : left + size] = i
        if i + 1 < len(path) and path[i + 1][0] == r:
            door = top if i % 2 else top + size - 1, left + size if r % 2 == 0 else left - 1
        else:
            door = top + size, left + size - 1 if r % 2 == 0 else left
        sheet[door] = "." if i + 1 < len(path) else "G"
        number[door] = i + 1
    sheet[1, 1] = "S"
    return "\n".join("".join(row) for row in sheet), number


def _path(rows: int, columns: int) -> list[tuple[int, int]]:
    """Return the rooms as (row, column) in the order of the path."""
    return [(r, c if r % 2 == 0 else columns - 1 - c) for r in range(rows) for c in range(columns)]


MAZES: dict[str, Callable[[int], World]] = {
    name: maker(name, task) for name, task in {"surefoot/Maze-v0": Maze, "surefoot/LongMaze-v0": LongMaze}.items()
}
"""Constructors by id that take the number of streams."""
