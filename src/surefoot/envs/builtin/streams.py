"""N streams of one task, stepped together in numpy.

A `Task` defines how streams start, move and look; `Streams` counts steps, ends episodes, starts the next ones and
holds the random generator. The classic-control environments, toys and mazes are all tasks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from surefoot.data.spaces import ActionSpace, Box, Discrete, Hybrid, MultiDiscrete, choice_sizes
from surefoot.envs.api import Arrays, Step, View, World
from surefoot.errors import ConfigError, EnvError, ShapeError

Transition = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Next states [S, n], rewards [n] float64 and terminated [n] bool, all of them new arrays."""


class Task(Protocol):
    """The rules of one environment. Its state is one array [S, n]: S numbers for each of n streams.

    A subclass has no action mask, no picture and no time limit unless it defines them.
    """

    observation: Box
    action: ActionSpace
    max_episode_steps: int | None = None
    """Episodes of this length are truncated; None for no limit."""

    def start(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Return the first states of n episodes, [S, n]."""
        ...

    def advance(self, state: np.ndarray, action: np.ndarray, rng: np.random.Generator) -> Transition:
        """Take one step in n streams."""
        ...

    def observe(self, state: np.ndarray) -> np.ndarray:
        """Return the observations of n streams, [n, …] float32, in a new array."""
        ...

    def mask(self, state: np.ndarray) -> np.ndarray | None:
        """Return the allowed actions of n streams, [n, A] bool; None if every action is allowed."""
        return None

    def draw(self, state: np.ndarray) -> np.ndarray | None:
        """Return a picture [H, W, 3] uint8 of one stream's state [S], or None if the task has no picture."""
        return None


class Streams(World):
    """N streams of one task as a `World`; a stream that ends starts its next episode in the same step.

    Before the first `reset` the streams are in the state after `reset(0)`. All streams share one generator, so the
    start of an episode depends on which episodes ended before it; the motion within an episode does not.
    """

    def __init__(self, name: str, task: Task, num_envs: int) -> None:
        if num_envs < 1:
            raise ConfigError(f"num_envs is {num_envs}; {name} needs at least 1 stream")
        self.name = name
        self.num_envs = num_envs
        self.task = task
        self.observation = {"obs": task.observation}
        self.action = task.action
        self.max_episode_steps = task.max_episode_steps
        self._actions = Actions(name, task.action, num_envs)
        self._limit = sys.maxsize if task.max_episode_steps is None else task.max_episode_steps
        self._every, self._none = np.ones(num_envs, bool), np.zeros(num_envs, bool)
        self.reset(0)

    def reset(self, seed: int) -> View:
        self._rng = np.random.Generator(np.random.PCG64(seed))
        self._state = self.task.start(self._rng, self.num_envs)
        self._set_elapsed(np.zeros(self.num_envs, np.int64))
        return self._view()

    def step(self, action: np.ndarray) -> Step:
        """Take `action` in each stream; raise `EnvError`, with no stream moved, if it is invalid."""
        action = self._actions.checked(action)
        state, reward, terminated = self.task.advance(self._state, action, self._rng)
        self._state = state
        self._clock += 1
        truncated = self._none.copy()
        if self._clock >= self._due:
            late = self._clock - self._started >= self._limit
            self._due = int(np.where(late, self._clock, self._started).min()) + self._limit
            truncated = late & ~terminated
        obs = self.task.observe(state)
        ended = (terminated | truncated).nonzero()[0]
        final_obs: Arrays | None = None
        if len(ended):
            final_obs = {"obs": obs}
            obs = obs.copy()
            obs[ended] = self._begin(ended)
        return Step(
            view=View(obs={"obs": obs}, action_mask=self.task.mask(state)),
            reward=reward,
            terminated=terminated,
            truncated=truncated,
            valid=self._every.copy(),
            final_obs=final_obs,
        )

    def reset_streams(self, streams: np.ndarray) -> View:
        self._begin(checked_streams(streams, self).nonzero()[0])
        return self._view()

    def state(self) -> dict[str, Any]:
        """Return the task's numbers [S, N], the steps taken in each episode [N], and the generator's state."""
        return {
            "task": self._state.copy(),
            "elapsed": self._clock - self._started,
            "rng": dict(self._rng.bit_generator.state),
        }

    def set_state(self, state: dict[str, Any]) -> View:
        """Continue from `state`; raise `ShapeError` for a state of another environment or another N."""
        task, elapsed = checked_state(state, self, self._state.dtype, self._state.shape)
        self._rng.bit_generator.state = state["rng"]
        self._state = task
        self._set_elapsed(elapsed)
        return self._view()

    def render(self) -> np.ndarray | None:
        return self.task.draw(self._state[:, 0])

    def _view(self) -> View:
        return View(obs={"obs": self.task.observe(self._state)}, action_mask=self.task.mask(self._state))

    def _begin(self, streams: np.ndarray) -> np.ndarray:
        """Start new episodes in `streams` (indices); return their observations."""
        first = self.task.start(self._rng, len(streams))
        self._state[:, streams] = first
        self._started[streams] = self._clock
        return self.task.observe(first)

    def _set_elapsed(self, elapsed: np.ndarray) -> None:
        # Start times on one clock instead of N counters: most steps then need one comparison to find no time-out.
        self._clock = 0
        self._started: np.ndarray = -elapsed
        self._due = int(self._started.min()) + self._limit


class Actions:
    """Shape, dtype and range of the actions of N streams."""

    def __init__(self, name: str, space: ActionSpace, num_envs: int) -> None:
        self.name = name
        sizes = choice_sizes(space)
        match space:
            case Box():
                row = space.shape
            case Hybrid():
                row = (len(sizes) + space.box.size,)
            case Discrete():
                row, sizes = (), space.n
            case MultiDiscrete():
                row = (len(sizes),)
        self.shape = (num_envs, *row)
        self._choices = None if isinstance(space, Box) else np.array(sizes, np.uint64)
        self._hybrid = isinstance(space, Hybrid)

    def checked(self, action: np.ndarray) -> np.ndarray:
        """Return `action`, as float32 if it is continuous; raise `EnvError` if it is invalid."""
        if self._choices is None or self._hybrid:
            if action.shape == self.shape and action.dtype.kind == "f" and self._in_range(action):
                return action.astype(np.float32, copy=False)
        # As uint64 a negative action is huge, so one comparison checks both ends; `in` on bytes is faster than any().
        elif (
            action.shape == self.shape
            and action.dtype.kind in "iu"
            and 1 not in (action.astype(np.uint64) >= self._choices).tobytes()
        ):
            return action
        what, kind = "actions", "float32" if self._choices is None else "int64"
        if self._hybrid:
            what, kind = "rows", "float32 that begin with choices"
        options = "" if self._choices is None else f", each from 0 to below {self._choices.tolist()}"
        extent = f" from {action.min()} to {action.max()}" if action.size else ""
        wanted = f"{what} {list(self.shape)} {kind}{options}"
        raise EnvError(f"{self.name} takes {wanted}; got {_described(action)}{extent}")

    def _in_range(self, action: np.ndarray) -> bool:
        """Return False if a choice of a hybrid action is not one of its options."""
        if self._choices is None:
            return True
        chosen = action[:, : self._choices.size]
        return bool(((chosen >= 0) & (chosen < self._choices) & (chosen == np.floor(chosen))).all())


def checked_streams(streams: np.ndarray, world: World) -> np.ndarray:
    """Return `streams`; raise `ShapeError` if it is not [N] bool."""
    if streams.shape != (world.num_envs,) or streams.dtype != np.bool_:
        raise ShapeError(f"streams is {_described(streams)}; {world.name} needs {[world.num_envs]} bool")
    return streams


def checked_state(
    state: dict[str, Any], world: World, kind: np.dtype[Any], shape: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Return copies of a state's task numbers ([S, N], of `kind`) and elapsed steps ([N] int64); check their shapes."""
    task = np.array(state["task"], kind)
    elapsed = np.array(state["elapsed"], np.int64)
    if task.shape != shape or elapsed.shape != (world.num_envs,):
        raise ShapeError(
            f"state holds task {list(task.shape)} and elapsed {list(elapsed.shape)}; {world.name} with "
            f"{world.num_envs} streams needs {list(shape)} and {[world.num_envs]}"
        )
    return task, elapsed


def _described(array: np.ndarray) -> str:
    return f"{list(array.shape)} {array.dtype}"


def maker(name: str, task: Callable[[], Task]) -> Callable[[int], World]:
    """Return a constructor of `name` that takes the number of streams."""
    return lambda num_envs: Streams(name, task(), num_envs)
