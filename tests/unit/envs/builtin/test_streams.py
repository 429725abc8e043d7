"""`Streams` on a task that counts: time limits, resets and states are known by counting too."""

import numpy as np
import pytest

from surefoot.data.spaces import Box, Discrete, Hybrid
from surefoot.envs.builtin.streams import Actions, Streams, Task, Transition
from surefoot.errors import ConfigError, EnvError, ShapeError


class Counter(Task):
    """The state is the number of steps; action 1 terminates. Episodes of 3 steps are truncated."""

    observation = Box((1,))
    action = Discrete(2)
    max_episode_steps = 3

    def start(self, rng: np.random.Generator, n: int) -> np.ndarray:
        return np.zeros((1, n))

    def advance(self, state: np.ndarray, action: np.ndarray, rng: np.random.Generator) -> Transition:
        return state + 1, state[0] + 1.0, action == 1

    def observe(self, state: np.ndarray) -> np.ndarray:
        return state.T.astype(np.float32)


def test_an_episode_is_truncated_at_its_limit_and_shows_the_next_start():
    world = Streams("counter", Counter(), 2)
    world.reset(0)
    steps = [world.step(np.array([0, 0])) for _ in range(3)]
    assert [step.truncated.tolist() for step in steps] == [[False] * 2, [False] * 2, [True] * 2]
    assert steps[-1].final_obs is not None
    assert steps[-1].final_obs["obs"].ravel().tolist() == [3.0, 3.0]
    assert steps[-1].view.obs["obs"].ravel().tolist() == [0.0, 0.0]


def test_streams_end_at_different_times_and_termination_wins():
    world = Streams("counter", Counter(), 2)
    world.reset(0)
    world.step(np.array([1, 0]))
    world.step(np.array([0, 0]))
    step = world.step(np.array([0, 1]))
    assert step.terminated.tolist() == [False, True]
    assert step.truncated.tolist() == [False, False]
    assert world.step(np.array([0, 0])).truncated.tolist() == [True, False]


def test_a_state_keeps_the_elapsed_steps_and_is_refused_by_another_size():
    world, other = Streams("counter", Counter(), 2), Streams("counter", Counter(), 3)
    world.step(np.array([0, 0]))
    state = world.state()
    assert state["elapsed"].tolist() == [1, 1]
    again = Streams("counter", Counter(), 2)
    again.set_state(state)
    again.step(np.array([0, 0]))
    assert again.step(np.array([0, 0])).truncated.all()
    with pytest.raises(ShapeError, match="3 streams needs"):
        other.set_state(state)


def test_only_the_chosen_streams_are_reset():
    world = Streams("counter", Counter(), 2)
    world.step(np.array([0, 0]))
    assert world.reset_streams(np.array([True, False])).obs["obs"].ravel().tolist() == [0.0, 1.0]
    with pytest.raises(ShapeError, match="needs \\[2\\] bool"):
        world.reset_streams(np.array([1, 0]))


@pytest.mark.parametrize("row", [[2.0, 0.5], [0.5, 0.5], [-1.0, 0.5]])
def test_a_hybrid_row_must_begin_with_valid_choices(row: list[float]):
    actions = Actions("hybrid", Hybrid((2,), Box((1,), -1.0, 1.0)), 1)
    assert actions.checked(np.array([[1.0, 0.5]])).dtype == np.float32
    with pytest.raises(EnvError, match="begin with choices"):
        actions.checked(np.array([row]))


def test_there_must_be_a_stream():
    with pytest.raises(ConfigError, match="num_envs is 0"):
        Streams("counter", Counter(), 0)
