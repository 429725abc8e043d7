"""Any maze: distances are those of a walk, and no walk leaves the floor."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from surefoot.envs.builtin.maze import MOVES, Maze


@st.composite
def mazes(draw: st.DrawFn) -> Maze:
    height, width = draw(st.integers(3, 7)), draw(st.integers(4, 7))
    inner = [(r, c) for r in range(1, height - 1) for c in range(1, width - 1)]
    first, goal = draw(st.lists(st.sampled_from(inner), min_size=2, max_size=2, unique=True))
    walls = draw(st.sets(st.sampled_from(inner))) - {first, goal}
    rows = [["#" if (r, c) not in inner or (r, c) in walls else "." for c in range(width)] for r in range(height)]
    rows[first[0]][first[1]], rows[goal[0]][goal[1]] = "S", "G"
    return Maze("\n".join("".join(row) for row in rows))


@given(mazes())
def test_a_distance_is_one_more_than_the_nearest_neighbours(maze: Maze):
    steps = maze.distance()
    assert steps[maze.goal] == 0
    for cell in np.flatnonzero(maze.floor):
        if cell == maze.goal:
            continue
        near = [steps[cell + down * maze.width + right] for down, right in MOVES]
        known = [x for x in near if x >= 0]
        assert steps[cell] == (1 + min(known) if known else -1)
    assert (steps[~maze.floor] == -1).all()


@given(mazes(), st.lists(st.integers(0, 3), max_size=30))
def test_a_walk_stays_on_the_floor_and_moves_at_most_one_cell(maze: Maze, actions: list[int]):
    rng = np.random.default_rng(0)
    state = maze.start(rng, 1)
    for action in actions:
        after, reward, terminated = maze.advance(state, np.array([action]), rng)
        assert maze.floor[after[0, 0]]
        there, here = maze.where(maze.observe(after)), maze.where(maze.observe(state))
        assert np.abs(there - here).sum() <= 1
        assert reward[0] == terminated[0] == (after[0, 0] == maze.goal)
        state = after
