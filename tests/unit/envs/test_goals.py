"""Sub-goals as small episodes: reached is terminated, out of time is truncated, and the true successor keeps the old goal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from surefoot.data.spaces import Box, Discrete
from surefoot.envs.api import Arrays, Step
from surefoot.envs.builtin.streams import Streams
from surefoot.envs.builtin.toys import Corridor
from surefoot.envs.goals import GOAL, GoalWorld, landmarks, offsets
from surefoot.errors import ConfigError, EnvError


def cell(obs: Arrays) -> np.ndarray:
    return obs["obs"].argmax(axis=1)[:, None]


CELLS = landmarks(np.array([[0], [2], [4]]), cell)
LEFT, RIGHT = 0, 1


class Scripted:
    """Chooses the same for every stream, from a list that is used up."""

    def __init__(self, *choices: int) -> None:
        self.choices = list(choices)
        self.allowed: list[np.ndarray | None] = []
        self.over: list[list[bool]] = []

    def first(self, obs: Arrays, allowed: np.ndarray | None) -> np.ndarray:
        self.allowed.append(allowed)
        return np.full(len(obs["obs"]), self.choices.pop(0))

    def step(self, step: Step, over: np.ndarray, allowed: np.ndarray | None) -> np.ndarray:
        self.over.append(over.tolist())
        self.allowed.append(allowed)
        return np.full(int(over.sum()), self.choices.pop(0)) if over.any() else np.zeros(0, int)


def a_world(*choices: int, every: int = 3, length: int = 5, **knobs: Any) -> tuple[GoalWorld, Scripted]:
    manager = Scripted(*choices)
    return GoalWorld(Streams("c", Corridor(length), 1), CELLS, manager, every=every, **knobs), manager


def go(world: GoalWorld, *actions: int) -> list[Step]:
    return [world.step(np.array([action])) for action in actions]


def test_the_worker_sees_its_world_and_the_way_that_is_left():
    world, _ = a_world(1)
    view = world.reset(0)
    assert world.observation == {"obs": Box((6,), 0.0, 1.0), GOAL: Box((1,))}
    assert view.obs[GOAL].tolist() == [[0.5]]  # two cells of the four that the landmarks span
    (step,) = go(world, RIGHT)
    assert step.view.obs[GOAL].tolist() == [[0.25]]


def test_reaching_the_sub_goal_pays_one_and_terminates():
    world, manager = a_world(1, 2)
    world.reset(0)
    one, two = go(world, RIGHT, RIGHT)
    assert (one.reward[0], one.terminated[0], one.truncated[0]) == (0.0, False, False)
    assert (two.reward[0], two.terminated[0], two.truncated[0]) == (1.0, True, False)
    assert two.stats["success"].tolist() == [1.0]
    assert two.view.obs[GOAL].tolist() == [[0.5]], "the next sub-goal, cell 4, seen from cell 2"
    assert manager.over == [[False], [True]]


def test_out_of_time_is_truncated_and_the_last_observation_still_has_the_old_goal():
    world, _ = a_world(2, 1)
    world.reset(0)
    step = go(world, RIGHT, LEFT, RIGHT)[-1]
    assert (step.terminated[0], step.truncated[0], step.reward[0]) == (False, True, 0.0)
    assert step.final_obs is not None
    assert step.final_obs[GOAL].tolist() == [[0.75]]  # cell 4 from cell 1
    assert step.view.obs[GOAL].tolist() == [[0.25]]  # cell 2 from cell 1
    assert step.stats["success"].tolist() == [0.0]


def test_time_begins_anew_with_each_sub_goal():
    world, manager = a_world(1, 2, 1)
    world.reset(0)
    go(world, RIGHT, RIGHT, LEFT, RIGHT, LEFT)
    assert manager.over == [[False], [True], [False], [False], [True]]


def test_the_end_of_the_worlds_episode_is_the_end_of_the_sub_goal():
    world, manager = a_world(2, 1, every=99, length=2)
    world.reset(0)
    step = go(world, RIGHT, RIGHT)[-1]
    assert (step.terminated[0], step.reward[0]) == (True, 0.0)
    assert step.final_obs is not None
    assert step.final_obs["obs"].argmax() == 2
    assert step.view.obs["obs"].argmax() == 0
    assert step.view.obs[GOAL].tolist() == [[0.5]], "chosen from where the next episode begins"
    assert manager.over[-1] == [True]


def test_a_worlds_time_limit_is_truncated_unless_the_sub_goal_was_reached():
    world, _ = a_world(2, 1, 2, every=99, length=2)
    world.base.task.max_episode_steps = 2
    base = Streams("c", world.base.task, 1)
    for choice, ends in ((2, (False, True)), (1, (True, False))):
        manager = Scripted(choice, 1)
        world = GoalWorld(base, landmarks(np.array([[0], [1], [9]]), cell), manager, every=99)
        world.reset(0)
        step = go(world, LEFT, RIGHT)[-1]
        assert (step.terminated[0], step.truncated[0]) == ends


def test_progress_and_a_share_of_the_worlds_reward_can_be_paid():
    world, _ = a_world(2, 1, progress=2.0, env_share=0.5, length=2, every=99)
    world.reset(0)
    one, two = go(world, RIGHT, RIGHT)
    assert one.reward[0] == pytest.approx(2.0 * 0.25)
    assert two.reward[0] == pytest.approx(2.0 * 0.25 + 0.5 * 1.0)


def test_where_one_is_cannot_be_asked_for():
    world, manager = a_world(1, 2)
    world.reset(0)
    go(world, RIGHT, RIGHT)
    assert manager.allowed[0].tolist() == [[False, True, True]]
    assert manager.allowed[-1].tolist() == [[True, False, True]]


def test_begin_sets_new_sub_goals_and_leaves_the_world_where_it_is():
    world, _ = a_world(2, 1)
    world.reset(0)
    go(world, RIGHT)
    view = world.begin()
    assert view.obs["obs"].argmax() == 1
    assert view.obs[GOAL].tolist() == [[0.25]]
    assert world.age.tolist() == [0]


def test_offsets_ask_for_a_place_relative_to_here():
    goal = offsets(1, 2.0, cell, near=0.5)
    assert goal.space == Box((1,), -1.0, 1.0)
    target = goal.target(np.array([[3.0]]), np.array([[-0.5]], np.float32))
    assert target.tolist() == [[2.0]]
    assert goal.reached(np.array([[2.4], [2.6]]), np.array([[2.0], [2.0]])).tolist() == [True, False]
    assert goal.offset(np.array([[3.0]]), target).tolist() == [[-0.5]]


def test_it_goes_on_from_its_state():
    world, _ = a_world(2, 1)
    world.reset(0)
    view = go(world, RIGHT)[-1].view
    other, _ = a_world(1)
    resumed = other.set_state(world.state())
    assert all(np.array_equal(x, resumed.obs[name]) for name, x in view.obs.items())
    assert other.age.tolist() == [1]


def test_what_cannot_be_a_goal_is_refused():
    with pytest.raises(ConfigError, match="all different"):
        landmarks(np.array([[1], [1]]), cell)
    with pytest.raises(ConfigError, match="near"):
        offsets(1, 1.0, cell, near=2.0)
    with pytest.raises(ConfigError, match="every is 0"):
        a_world(1, every=0)
    flat = landmarks(np.array([[0], [1]]), lambda obs: obs["obs"].argmax(axis=1))
    with pytest.raises(EnvError, match=r"place is \[1\]"):
        GoalWorld(Streams("c", Corridor(2), 1), flat, Scripted(1), every=2).reset(0)


def test_a_world_that_resets_late_is_refused():
    world, _ = a_world(1)
    world.reset(0)
    step = world.base.step(np.array([RIGHT]))
    step.valid[:] = False
    world.base.step = lambda action: step
    with pytest.raises(EnvError, match="resets one step late"):
        go(world, RIGHT)


def test_landmarks_are_a_choice():
    assert CELLS.space == Discrete(3)


def test_what_is_out_of_reach_cannot_be_asked_for_unless_nothing_else_is_left():
    goal = landmarks(np.array([[0], [2], [4]]), cell, reach=2)
    assert goal.allowed is not None
    assert goal.allowed(np.array([[0.0], [2.0], [4.0], [9.0]])).tolist() == [
        [False, True, False],
        [True, False, True],
        [False, True, False],
        [True, True, True],
    ]
    assert goal.scale == 2.0
    with pytest.raises(ConfigError, match="near is 3"):
        landmarks(np.array([[0], [2]]), cell, near=3, reach=2)


def test_only_some_may_be_among_the_choices():
    goal = landmarks(np.array([[0], [2], [4]]), cell, among=lambda here: np.array([[True, True, False]] * len(here)))
    assert goal.allowed is not None
    assert goal.allowed(np.array([[0.0], [4.0]])).tolist() == [[False, True, False], [True, True, False]]
