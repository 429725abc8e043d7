"""A world whose streams are sent somewhere: sub-goals, who sets them, and the small episodes they make. Numpy only."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from surefoot.data.spaces import Box, Discrete, ObservationSpace
from surefoot.envs.api import Arrays, Step, View, World
from surefoot.errors import ConfigError, EnvError

GOAL = "goal"
"""The name under which a worker sees its sub-goal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalSpec:
    """What can be asked of a stream, in coordinates of which a place has `size`. Make one with `landmarks` or `offsets`."""

    space: Discrete | Box
    """What is chosen from."""
    size: int
    place: Callable[[Arrays], np.ndarray]
    """From observations {name: [n, …]} to where the streams are, [n, size]."""
    target: Callable[[np.ndarray, np.ndarray], np.ndarray]
    """From places [n, size] and choices [n, …] to the places that are asked for, [n, size]."""
    near: float
    """A sub-goal is reached where no coordinate is further from it than this."""
    scale: float
    """Distances are divided by it before anyone sees them."""
    allowed: Callable[[np.ndarray], np.ndarray] | None = None
    """From places to which choices may be made, [n, choices] bool; None if all may."""

    def reached(self, place: np.ndarray, target: np.ndarray) -> np.ndarray:
        """[n] bool."""
        return np.abs(place - target).max(axis=1) <= self.near

    def distance(self, place: np.ndarray, target: np.ndarray) -> np.ndarray:
        """[n] float64: along the coordinates, scaled. Walls are not known here."""
        return np.abs(place - target).sum(axis=1) / self.scale

    def shown(self, place: np.ndarray, target: np.ndarray) -> np.ndarray:
        """[n, size] float32: what a worker sees of its sub-goal, the way that is left."""
        return ((target - place) / self.scale).astype(np.float32)


def landmarks(
    points: np.ndarray,
    place: Callable[[Arrays], np.ndarray],
    *,
    near: float = 0.0,
    reach: float = math.inf,
    among: Callable[[np.ndarray], np.ndarray] | None = None,
) -> GoalSpec:
    """Sub-goals from a list of places, [K, size].

    Only those may be chosen that are further than `near` and not further than `reach` in any coordinate, and that `among`
    (from places [n, size] to [n, K] bool) knows: to be sent where one is, or where one cannot get in time, teaches
    nothing. Where that leaves none, all may be.
    """
    table = np.asarray(points, np.float64)
    if table.ndim != 2 or len(table) < 2 or len(np.unique(table, axis=0)) < len(table):
        raise ConfigError(f"points is {list(table.shape)}; landmarks need [K, size] with two or more, all different")
    if not 0 <= near < reach:
        raise ConfigError(f"near is {near} and reach is {reach}; it must be 0 ≤ near < reach")

    def allowed(here: np.ndarray) -> np.ndarray:
        away = np.abs(here[:, None] - table).max(axis=2)
        may = (away > near) & (away <= reach)
        if among is not None:
            may &= among(here)
        return may | ~may.any(axis=1, keepdims=True)

    span = float(np.ptp(table, axis=0).max())
    return GoalSpec(
        space=Discrete(len(table)),
        size=table.shape[1],
        place=place,
        target=lambda here, choice: table[choice],
        near=near,
        scale=min(span, reach),
        allowed=allowed,
    )


def offsets(size: int, reach: float, place: Callable[[Arrays], np.ndarray], *, near: float) -> GoalSpec:
    """Sub-goals up to `reach` away from where the stream is, in each of `size` coordinates."""
    if size < 1 or not 0 < near < reach:
        raise ConfigError(f"size is {size}, near {near} and reach {reach}; it must be size ≥ 1 and 0 < near < reach")
    return GoalSpec(
        space=Box((size,), -1.0, 1.0),
        size=size,
        place=place,
        target=lambda here, choice: here + reach * choice.astype(np.float64).reshape(len(here), size),
        near=near,
        scale=reach,
    )


class Manager(Protocol):
    """Sets the sub-goals, and is told how each step went."""

    def first(self, obs: Arrays, allowed: np.ndarray | None) -> np.ndarray:
        """A choice for every stream; what was chosen before is forgotten."""
        ...

    def step(self, step: Step, over: np.ndarray, allowed: np.ndarray | None) -> np.ndarray:
        """All streams took `step`; a choice for each of those whose sub-goal is `over` ([N] bool), in their order.

        `allowed` has a row for each of those.
        """
        ...


class GoalWorld(World):
    """`base` as a worker sees it: its sub-goal is in the observation, and reaching it is the reward.

    The worker's episode is one sub-goal. It is terminated where the sub-goal was reached or the base's episode was, and
    truncated after `every` steps, or where the base's was: what could have come of it is then still worth something.
    Single streams cannot be reset: their sub-goals are the manager's.
    """

    def __init__(
        self,
        base: World,
        goal: GoalSpec,
        manager: Manager,
        *,
        every: int,
        progress: float = 0.0,
        env_share: float = 0.0,
    ) -> None:
        if every < 1:
            raise ConfigError(f"every is {every}; a sub-goal must be given at least 1 step")
        if GOAL in base.observation:
            raise ConfigError(f"{base.name} has an observation called {GOAL!r} already; rename it")
        self.base, self.goal, self.manager = base, goal, manager
        self.every, self.progress, self.env_share = every, progress, env_share
        self.name, self.num_envs = base.name, base.num_envs
        self.observation: ObservationSpace = {**base.observation, GOAL: Box((goal.size,))}
        self.action, self.inexact = base.action, base.inexact
        self.target, self.place = (np.zeros((base.num_envs, goal.size)) for _ in range(2))
        self.age = np.zeros(base.num_envs, np.int64)
        self.view: View | None = None

    def reset(self, seed: int) -> View:
        """Start N fresh episodes, each with a first sub-goal."""
        return self._all_new(self.base.reset(seed))

    def begin(self) -> View:
        """Forget all sub-goals and set new ones; the base's episodes go on."""
        assert self.view is not None, "begin() comes after reset() or set_state()"
        return self._all_new(self.view)

    def step(self, action: np.ndarray) -> Step:
        """One step of the base; where the sub-goal is over, the view has the next one."""
        step = self.base.step(action)
        if not step.valid.all():
            raise EnvError(
                f"{self.name} resets one step late, and a sub-goal cannot wait for that; give its id or a function that "
                "builds it, which reset in the same step"
            )
        ended = step.terminated | step.truncated
        before, true = self.goal.distance(self.place, self.target), step.view.obs
        if (final := step.final_obs) is not None:  # only the rows of streams that ended need be true there
            shaped = {name: ended.reshape(-1, *(1,) * (x.ndim - 1)) for name, x in true.items()}
            true = {name: np.where(shaped[name], final[name], x) for name, x in true.items()}
        there = self._place(true)
        reached = self.goal.reached(there, self.target)
        reward = reached + self.env_share * step.reward
        if self.progress:
            reward = reward + self.progress * (before - self.goal.distance(there, self.target))
        self.age += 1
        terminated = step.terminated | reached
        truncated = (step.truncated | (self.age >= self.every)) & ~terminated
        over = terminated | truncated
        final_obs = None
        if over.any():
            final_obs = {**true, GOAL: self.goal.shown(there, self.target)}
        # Set the next sub-goal where the last is over, from where the stream stands now.
        here = self._place(step.view.obs) if ended.any() else there
        choice = self.manager.step(step, over, self._allowed(here[over]) if over.any() else None)
        if over.any():
            self.target[over] = self.goal.target(here[over], choice)
            self.age[over] = 0
        self.place = here
        return Step(
            view=self._shown(step.view),
            reward=reward.astype(np.float64),
            terminated=terminated,
            truncated=truncated,
            valid=step.valid,
            final_obs=final_obs,
            stats={"success": reached.astype(np.float64)},
        )

    def state(self) -> dict[str, Any]:
        """The base's state and the sub-goals; not the manager's."""
        return {"base": self.base.state(), "target": self.target.copy(), "age": self.age.copy()}

    def set_state(self, state: dict[str, Any]) -> View:
        """Go on from where `state` was taken."""
        view = self.base.set_state(state["base"])
        self.target, self.age = np.array(state["target"]), np.array(state["age"])
        self.place = self._place(view.obs)
        return self._shown(view)

    def render(self) -> np.ndarray | None:
        """The base's picture."""
        return self.base.render()

    def close(self) -> None:
        """Free what the base holds."""
        self.base.close()

    def _all_new(self, view: View) -> View:
        obs = {name: view.obs[name] for name in self.base.observation}
        self.place = self._place(obs)
        choice = self.manager.first(obs, self._allowed(self.place))
        self.target = self.goal.target(self.place, choice)
        self.age[:] = 0
        return self._shown(View(obs=obs, action_mask=view.action_mask))

    def _shown(self, view: View) -> View:
        goal = self.goal.shown(self.place, self.target)
        self.view = View(obs={**view.obs, GOAL: goal}, action_mask=view.action_mask)
        return self.view

    def _place(self, obs: Arrays) -> np.ndarray:
        place = np.asarray(self.goal.place(obs), np.float64)
        if place.shape != (self.num_envs, self.goal.size):
            raise EnvError(
                f"the goal's place is {list(place.shape)} for {self.num_envs} streams; it must be "
                f"{[self.num_envs, self.goal.size]}, one row a stream"
            )
        return place

    def _allowed(self, place: np.ndarray) -> np.ndarray | None:
        return None if self.goal.allowed is None else self.goal.allowed(place)
