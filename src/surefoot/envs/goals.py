"""Sub-goals for hierarchical policies: a world in which a worker's episode is one sub-goal. Numpy only."""

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
"""Name of the observation that holds a worker's sub-goal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalSpec:
    """A space of sub-goals, as points with `size` coordinates. Make one with `landmarks` or `offsets`."""

    space: Discrete | Box
    """The manager's action space."""
    size: int
    place: Callable[[Arrays], np.ndarray]
    """Maps observations {name: [n, …]} to the positions of the streams, [n, size]."""
    target: Callable[[np.ndarray, np.ndarray], np.ndarray]
    """Maps positions [n, size] and choices [n, …] to sub-goals, [n, size]."""
    near: float
    """A sub-goal is reached if no coordinate differs by more than this."""
    scale: float
    """Observed distances are divided by this."""
    allowed: Callable[[np.ndarray], np.ndarray] | None = None
    """Maps positions to the allowed choices, [n, choices] bool; None if all are allowed."""

    def reached(self, place: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Return whether the sub-goal is reached, [n] bool."""
        return np.abs(place - target).max(axis=1) <= self.near

    def distance(self, place: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Return the scaled L1 distance, [n] float64; it ignores walls."""
        return np.abs(place - target).sum(axis=1) / self.scale

    def offset(self, place: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Return what a worker observes of its sub-goal: the remaining offset, [n, size] float32."""
        return ((target - place) / self.scale).astype(np.float32)


def landmarks(
    points: np.ndarray,
    place: Callable[[Arrays], np.ndarray],
    *,
    near: float = 0.0,
    reach: float = math.inf,
    among: Callable[[np.ndarray], np.ndarray] | None = None,
) -> GoalSpec:
    """Return sub-goals that are chosen from a list of points.

    Only landmarks that are further than `near` and not further than `reach` are allowed: a sub-goal that is already
    reached, or that cannot be reached in time, teaches nothing. Where none is left, all are allowed.

    Args:
        points: The landmarks, [K, size], all different.
        place: Maps observations {name: [n, …]} to the positions of the streams, [n, size].
        near: A landmark is reached if no coordinate differs by more than this.
        reach: Largest allowed difference of a coordinate.
        among: Further limits the choice: maps positions [n, size] to allowed landmarks, [n, K] bool.
    """
    table = np.asarray(points, np.float64)
    if table.ndim != 2 or len(table) < 2 or len(np.unique(table, axis=0)) < len(table):
        raise ConfigError(f"points is {list(table.shape)}; it must be [K, size] with K at least 2, all different")
    if not 0 <= near < reach:
        raise ConfigError(f"near is {near} and reach is {reach}; they must satisfy 0 ≤ near < reach")

    def allowed(position: np.ndarray) -> np.ndarray:
        away = np.abs(position[:, None] - table).max(axis=2)
        mask = (away > near) & (away <= reach)
        if among is not None:
            mask &= among(position)
        return mask | ~mask.any(axis=1, keepdims=True)

    return GoalSpec(
        space=Discrete(len(table)),
        size=table.shape[1],
        place=place,
        target=lambda position, choice: table[choice],
        near=near,
        scale=min(float(np.ptp(table, axis=0).max()), reach),
        allowed=allowed,
    )


def offsets(size: int, reach: float, place: Callable[[Arrays], np.ndarray], *, near: float) -> GoalSpec:
    """Return sub-goals relative to the stream's position.

    Args:
        size: Number of coordinates.
        reach: Largest distance of a sub-goal in each coordinate.
        place: Maps observations {name: [n, …]} to the positions of the streams, [n, size].
        near: A sub-goal is reached if no coordinate differs by more than this.
    """
    if size < 1 or not 0 < near < reach:
        raise ConfigError(
            f"size is {size}, near {near} and reach {reach}; they must satisfy size ≥ 1 and 0 < near < reach"
        )
    return GoalSpec(
        space=Box((size,), -1.0, 1.0),
        size=size,
        place=place,
        target=lambda position, choice: position + reach * choice.astype(np.float64).reshape(len(position), size),
        near=near,
        scale=reach,
    )


class Manager(Protocol):
    """Sets the sub-goals and receives every step."""

    def first(self, obs: Arrays, allowed: np.ndarray | None) -> np.ndarray:
        """Return a first choice for every stream, and forget earlier ones."""
        ...

    def step(self, step: Step, over: np.ndarray, allowed: np.ndarray | None) -> np.ndarray:
        """Receive the `step` of all streams; return a choice for each stream whose sub-goal is `over` ([N] bool).

        `allowed` has one row per such stream.
        """
        ...


class GoalWorld(World):
    """`base` as a worker sees it: the sub-goal is part of the observation, and reaching it is the reward.

    The worker's episode is one sub-goal. It is terminated if the sub-goal is reached or the base's episode terminates, and
    truncated after `every` steps or with the base's episode, so that its value is bootstrapped. Single streams cannot be
    reset.

    Args:
        base: The environment.
        goal: The space of sub-goals.
        manager: Sets the sub-goals.
        every: Steps after which a sub-goal is replaced.
        progress: Reward for getting nearer to the sub-goal by a (scaled) distance of 1.
        env_share: Share of the environment's reward that is added to the worker's.
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
            raise ConfigError(f"every is {every}; a sub-goal needs at least 1 step")
        if GOAL in base.observation:
            raise ConfigError(f"{base.name} already has an observation called {GOAL!r}; rename it")
        self.base, self.goal, self.manager = base, goal, manager
        self.every, self.progress, self.env_share = every, progress, env_share
        self.name, self.num_envs = base.name, base.num_envs
        self.observation: ObservationSpace = {**base.observation, GOAL: Box((goal.size,))}
        self.action, self.inexact = base.action, base.inexact
        self.target, self.place = (np.zeros((base.num_envs, goal.size)) for _ in range(2))
        self.age = np.zeros(base.num_envs, np.int64)
        self.view: View | None = None

    def reset(self, seed: int) -> View:
        return self._all_new(self.base.reset(seed))

    def begin(self) -> View:
        """Replace all sub-goals; the base's episodes continue."""
        assert self.view is not None, "begin() comes after reset() or set_state()"
        return self._all_new(self.view)

    def step(self, action: np.ndarray) -> Step:
        """Step the base; where a sub-goal is over, the view holds the next one."""
        step = self.base.step(action)
        if not step.valid.all():
            raise EnvError(
                f"{self.name} resets one step late, which sub-goals do not support; pass its id or a function that builds "
                "it: those reset in the same step"
            )
        ended = step.terminated | step.truncated
        before, successor = self.goal.distance(self.place, self.target), step.view.obs
        if (final := step.final_obs) is not None:  # only its rows of ended streams are defined
            shaped = {name: ended.reshape(-1, *(1,) * (x.ndim - 1)) for name, x in successor.items()}
            successor = {name: np.where(shaped[name], final[name], x) for name, x in successor.items()}
        reached_place = self._place(successor)
        reached = self.goal.reached(reached_place, self.target)
        reward = reached + self.env_share * step.reward
        if self.progress:
            reward = reward + self.progress * (before - self.goal.distance(reached_place, self.target))
        self.age += 1
        terminated = step.terminated | reached
        truncated = (step.truncated | (self.age >= self.every)) & ~terminated
        over = terminated | truncated
        final_obs = None
        if over.any():
            final_obs = {**successor, GOAL: self.goal.offset(reached_place, self.target)}
        # The next sub-goal starts from the stream's current position: after a reset, that of the new episode.
        place = self._place(step.view.obs) if ended.any() else reached_place
        choice = self.manager.step(step, over, self._allowed(place[over]) if over.any() else None)
        if over.any():
            self.target[over] = self.goal.target(place[over], choice)
            self.age[over] = 0
        self.place = place
        return Step(
            view=self._with_goal(step.view),
            reward=reward.astype(np.float64),
            terminated=terminated,
            truncated=truncated,
            valid=step.valid,
            final_obs=final_obs,
            stats={"success": reached.astype(np.float64)},
        )

    def state(self) -> dict[str, Any]:
        """Return the base's state and the sub-goals, without the manager's state."""
        return {"base": self.base.state(), "target": self.target.copy(), "age": self.age.copy()}

    def set_state(self, state: dict[str, Any]) -> View:
        view = self.base.set_state(state["base"])
        self.target, self.age = np.array(state["target"]), np.array(state["age"])
        self.place = self._place(view.obs)
        return self._with_goal(view)

    def render(self) -> np.ndarray | None:
        return self.base.render()

    def close(self) -> None:
        self.base.close()

    def _all_new(self, view: View) -> View:
        obs = {name: view.obs[name] for name in self.base.observation}
        self.place = self._place(obs)
        choice = self.manager.first(obs, self._allowed(self.place))
        self.target = self.goal.target(self.place, choice)
        self.age[:] = 0
        return self._with_goal(View(obs=obs, action_mask=view.action_mask))

    def _with_goal(self, view: View) -> View:
        goal = self.goal.offset(self.place, self.target)
        self.view = View(obs={**view.obs, GOAL: goal}, action_mask=view.action_mask)
        return self.view

    def _place(self, obs: Arrays) -> np.ndarray:
        place = np.asarray(self.goal.place(obs), np.float64)
        if place.shape != (self.num_envs, self.goal.size):
            raise EnvError(
                f"the goal's place is {list(place.shape)} for {self.num_envs} streams; it must be "
                f"{[self.num_envs, self.goal.size]}, one row per stream"
            )
        return place

    def _allowed(self, place: np.ndarray) -> np.ndarray | None:
        return None if self.goal.allowed is None else self.goal.allowed(place)
