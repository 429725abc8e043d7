"""N streams of one task at a time, in numpy.

A task says how its streams start, move and look; `Streams` counts the steps, ends the episodes, starts the
next ones and keeps the randomness. The classics and the toys run on the same `Streams`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from surefoot.data.spaces import ActionSpace, Box, Discrete, Hybrid, MultiDiscrete, choice_sizes
from surefoot.envs.api import Arrays, Step, View, World
from surefoot.errors import ConfigError, EnvError, ShapeError

Moved = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Next states [S, n], rewards [n] float64 and terminated [n] bool, all of them new arrays."""


class Task(Protocol):
    """How one kind of stream lives. Its state is one array [S, n]: S numbers for each of n streams.

    A class that derives from it has no action mask, no picture and no time limit, unless it defines these.
    """

    observation: Box
    action: ActionSpace
    max_episode_steps: int | None = None
    """An episode this long is truncated; None if nothing cuts it short."""

    def start(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """First states of n episodes, [S, n]."""
        ...

    def advance(self, state: np.ndarray, action: np.ndarray, rng: np.random.Generator) -> Moved:
        """Take one step in n streams."""
        ...

    def observe(self, state: np.ndarray) -> np.ndarray:
        """What n streams see, [n, …] float32, a new array."""
        ...

    def mask(self, state: np.ndarray) -> np.ndarray | None:
        """What n streams may do, [n, A] bool; None if everything is allowed."""
        return None

    def draw(self, state: np.ndarray) -> np.ndarray | None:
        """A picture [H, W, 3] uint8 of one stream's state [S], or None if there is nothing to see."""
        return None


class Streams(World):
    """N streams of one task as a `World`; a stream that ends begins its next episode in the same step.

    Before the first `reset` it stands as `reset(0)` would leave it. One generator serves all streams, so the
    start of an episode depends on what ended before it in other streams; the motion in between does not.
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
        """Start N fresh episodes; everything random from here on follows from `seed`."""
        self._rng = np.random.Generator(np.random.PCG64(seed))
        self._state = self.task.start(self._rng, self.num_envs)
        self._set_elapsed(np.zeros(self.num_envs, np.int64))
        return self._view()

    def step(self, action: np.ndarray) -> Step:
        """Take `action` in each stream; nothing has moved if it is refused."""
        action = self._actions.checked(action)
        state, reward, terminated = self.task.advance(self._state, action, self._rng)
        self._state = state
        self._clock += 1
        truncated = self._none.copy()
        if self._clock >= self._due:
            late = self._clock - self._born >= self._limit
            self._due = int(np.where(late, self._clock, self._born).min()) + self._limit
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
        """Begin a new episode where `streams` ([N] bool) says so."""
        self._begin(checked_streams(streams, self).nonzero()[0])
        return self._view()

    def state(self) -> dict[str, Any]:
        """All there is: the task's numbers [S, N], the steps taken in each episode [N], the generator."""
        return {
            "task": self._state.copy(),
            "elapsed": self._clock - self._born,
            "rng": dict(self._rng.bit_generator.state),
        }

    def set_state(self, state: dict[str, Any]) -> View:
        """Go on from where `state` was taken; a state of another world or another N is refused."""
        task, elapsed = checked_state(state, self, self._state.dtype, self._state.shape)
        self._rng.bit_generator.state = state["rng"]
        self._state = task
        self._set_elapsed(elapsed)
        return self._view()

    def render(self) -> np.ndarray | None:
        """[300, 400, 3] uint8 picture of the first stream; None for a task with nothing to see."""
        return self.task.draw(self._state[:, 0])

    def _view(self) -> View:
        return View(obs={"obs": self.task.observe(self._state)}, action_mask=self.task.mask(self._state))

    def _begin(self, streams: np.ndarray) -> np.ndarray:
        """Put a first state into `streams` (indices); returns what those streams see."""
        first = self.task.start(self._rng, len(streams))
        self._state[:, streams] = first
        self._born[streams] = self._clock
        return self.task.observe(first)

    def _set_elapsed(self, elapsed: np.ndarray) -> None:
        # Births on one clock rather than N counters: most steps then need no arithmetic to see that none is too old.
        self._clock = 0
        self._born: np.ndarray = -elapsed
        self._due = int(self._born.min()) + self._limit


class Actions:
    """What the actions of N streams must look like."""

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
        """`action`, as float32 if it is continuous; an action that cannot be taken is refused."""
        if self._choices is None or self._hybrid:
            if action.shape == self.shape and action.dtype.kind == "f" and self._in_range(action):
                return action.astype(np.float32, copy=False)
        # Unsigned, a negative action is a huge one: one comparison looks at both ends. `in` on bytes is any(), sooner.
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
        """True unless a choice of a hybrid action is none of its options."""
        if self._choices is None:
            return True
        chosen = action[:, : self._choices.size]
        return bool(((chosen >= 0) & (chosen < self._choices) & (chosen == np.floor(chosen))).all())


def checked_streams(streams: np.ndarray, world: World) -> np.ndarray:
    """`streams` ([N] bool), or a ShapeError if it is something else."""
    if streams.shape != (world.num_envs,) or streams.dtype != np.bool_:
        raise ShapeError(f"streams is {_described(streams)}; {world.name} needs {[world.num_envs]} bool")
    return streams


def checked_state(
    state: dict[str, Any], world: World, kind: np.dtype[Any], shape: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Copies of a state's task numbers ([S, N], of `kind`) and steps taken ([N] int64), or a ShapeError."""
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
    """A constructor of `name` that takes the number of streams."""
    return lambda num_envs: Streams(name, task(), num_envs)
