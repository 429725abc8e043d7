"""The mazes: their shortest ways are known, only the goal pays, and a walk without a plan does not get there."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest

from surefoot.envs.builtin.maze import MAZES, MOVES, LongMaze, Maze
from surefoot.envs.builtin.streams import Streams
from surefoot.errors import ConfigError

TINY = """
#####
#S..#
###.#
#G..#
#####
"""
TASKS = {"surefoot/Maze-v0": (Maze, 52), "surefoot/LongMaze-v0": (LongMaze, 65)}


def shortest_by_text(rows: list[str]) -> int:
    """Breadth first over the letters, with no arrays."""
    at = {sign: (r, row.index(sign)) for r, row in enumerate(rows) for sign in "SG" if sign in row}
    seen, queue = {at["S"]: 0}, deque([at["S"]])
    while queue:
        r, c = queue.popleft()
        for down, right in ((0, 1), (1, 0), (0, -1), (-1, 0)):
            there = (r + down, c + right)
            if rows[there[0]][there[1]] != "#" and there not in seen:
                seen[there] = seen[r, c] + 1
                queue.append(there)
    return seen[at["G"]]


def way(task: Maze) -> list[int]:
    """The actions of a shortest way, downhill on the distance."""
    steps, cell, actions = task.distance(), task.first, list[int]()
    while cell != task.goal:
        near = [cell + down * task.width + right for down, right in MOVES]
        actions.append(next(a for a, there in enumerate(near) if steps[there] == steps[cell] - 1))
        cell = near[actions[-1]]
    return actions


@pytest.mark.parametrize("name", TASKS)
def test_the_shortest_way_is_the_known_one(name: str) -> None:
    make, steps = TASKS[name]
    assert make().shortest == steps == shortest_by_text(make().layout)


@pytest.mark.parametrize("name", TASKS)
def test_only_the_goal_pays_and_it_ends_the_episode(name: str) -> None:
    world, actions = MAZES[name](2), way(TASKS[name][0]())
    first = world.reset(0).obs["obs"]
    for t, action in enumerate(actions):
        step = world.step(np.array([action, 0]))
        last = t == len(actions) - 1
        assert step.reward.tolist() == [float(last), 0.0]
        assert step.terminated.tolist() == [last, False]
    assert np.array_equal(step.view.obs["obs"], first), "the next episode begins at S; upwards of S is a wall"


@pytest.mark.parametrize("name", TASKS)
def test_a_walk_by_chance_does_not_arrive(name: str) -> None:
    # The exact probability, by pushing it through the maze one step at a time.
    task = TASKS[name][0]()
    world = Streams("m", task, task.height * task.width)
    chance = np.zeros(world.num_envs)
    chance[task.first] = 1.0
    cells = np.arange(world.num_envs)[None]
    after = [task.advance(cells, np.full(world.num_envs, a), np.random.default_rng(0))[0][0] for a in range(4)]
    for _ in range(task.max_episode_steps):
        moving = np.where(np.arange(len(chance)) == task.goal, 0.0, chance)
        arrived, chance = chance[task.goal], np.zeros_like(chance)
        for there in after:
            np.add.at(chance, there, moving / 4)
        chance[task.goal] += arrived
    assert chance.sum() == pytest.approx(1.0)
    assert 0 < chance[task.goal] < 1e-4


def test_a_wall_holds() -> None:
    world = Streams("tiny", Maze(TINY, limit=9), 1)
    first = world.reset(0).obs["obs"]
    for action in (0, 2, 3):  # up, down, left of S
        assert np.array_equal(world.step(np.array([action])).view.obs["obs"], first)
    assert not np.array_equal(world.step(np.array([1])).view.obs["obs"], first)


def test_the_time_limit_cuts_the_walk_short() -> None:
    world = Streams("tiny", Maze(TINY, limit=3), 1)
    world.reset(0)
    assert [bool(world.step(np.array([0])).truncated[0]) for _ in range(4)] == [False, False, True, False]


def test_an_observation_says_row_and_column() -> None:
    task = Maze(TINY)
    view = Streams("tiny", task, 1).reset(0)
    assert view.obs["obs"].tolist() == [[0, 1, 0, 0, 0, 0, 1, 0, 0, 0]]
    assert task.where(view.obs["obs"]).tolist() == [[1, 1]]


def test_rooms_are_counted_along_the_way_and_a_door_belongs_to_the_one_behind_it() -> None:
    task = LongMaze(2, 2, 2)
    assert task.layout == ["#######", "#S.#..#", "#.....#", "#####.#", "#..#..#", "#.....#", "#G#####", "#######"]
    seen = task.observe(np.arange(task.height * task.width)[None])
    rooms = task.room(seen).reshape(task.height, task.width)
    assert rooms[2, 1:6].tolist() == [0, 0, 1, 1, 1]
    assert rooms[3, 5] == 2
    assert rooms[5, 1:6].tolist() == [3, 3, 3, 2, 2]
    assert rooms[6, 1] == 4
    assert task.landmarks.tolist() == [[1.5, 1.5], [1.5, 4.5], [4.5, 4.5], [4.5, 1.5], [6, 1]]
    assert task.nearby(np.array([[1.0, 1.0], [3.0, 5.0]])).tolist() == [[1, 1, 0, 0, 0], [0, 1, 1, 1, 0]]


@pytest.mark.parametrize("name", TASKS)
def test_the_picture_shows_the_walker(name: str) -> None:
    world, actions = MAZES[name](1), way(TASKS[name][0]())
    world.reset(0)
    before = world.render()
    world.step(np.array(actions[:1]))
    after = world.render()
    assert before is not None
    assert after is not None
    assert (before.shape, before.dtype) == ((300, 400, 3), np.uint8)
    assert (before != after).any()


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ("###\n#S#\n###", "one 'G'"),
        ("####\n#SG#\n#S.#\n####", "one 'S'"),
        ("####\n#SG.\n####", "open at its border"),
        ("####\n#SX#\n####", "three or more rows"),
        ("", "three or more rows"),
    ],
)
def test_a_layout_that_is_no_maze_is_refused(layout: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Maze(layout)


def test_rooms_must_be_there() -> None:
    with pytest.raises(ConfigError, match="size 1"):
        LongMaze(size=1)
