"""The environment interface of the engine: N streams that take actions and return steps. Numpy only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from surefoot.data.spaces import ActionSpace, ObservationSpace

Arrays = dict[str, np.ndarray]


# Not frozen: one of each is created in every step, and creating a frozen one takes four times as long.
@dataclass(slots=True, kw_only=True)
class View:
    """What the N streams observe now, and which actions each may take."""

    obs: Arrays
    """{name: [N, …]}; a single unnamed observation is called "obs"."""
    action_mask: np.ndarray | None = None
    """[N, A] bool, True = allowed; A is the number of choices (all heads side by side for MultiDiscrete)."""


@dataclass(slots=True, kw_only=True)
class Step:
    """The result of one action in each of the N streams."""

    view: View
    """What to act on next: in a stream that ended, the first view of its next episode (or, in a world that resets one
    step later, still the last view of the old one)."""
    reward: np.ndarray
    """[N] float64, raw."""
    terminated: np.ndarray
    """[N] bool: the episode ended and the value of its future is 0."""
    truncated: np.ndarray
    """[N] bool: the episode was cut off; never together with `terminated`, which takes precedence."""
    valid: np.ndarray
    """[N] bool: False where the action was ignored because the stream was only being reset."""
    final_obs: Arrays | None = None
    """{name: [N, …]} whose ended rows hold the true successor observation; None if no stream ended."""
    stats: Arrays = field(default_factory=dict[str, np.ndarray])
    """{name: [N]} metrics of the environment; "success" and "whole_return" are read at the end of an episode."""


class World(Protocol):
    """N independent streams of one task.

    A world starts the next episode of a stream by itself. A subclass that does not define `render`, `close` or
    `reset_streams` has no picture and no resources, and cannot reset single streams.
    """

    name: str
    """The id it was made from, such as "CartPole-v1"."""
    num_envs: int
    observation: ObservationSpace
    action: ActionSpace
    inexact: str | None = None
    """None if `state` is complete, so that a resumed run is bit-exact; otherwise the reason why not."""

    def reset(self, seed: int) -> View:
        """Start N new episodes; all randomness from now on follows from `seed`."""
        ...

    def step(self, action: np.ndarray) -> Step:
        """Take `action` ([N] int64, [N, K] int64, or [N, *shape] float32 within bounds) in each stream."""
        ...

    def reset_streams(self, streams: np.ndarray) -> View | None:
        """Start a new episode in each stream of the mask `streams` ([N] bool); return None if not supported."""
        return None

    def state(self) -> dict[str, Any]:
        """Return a nested dict of arrays and JSON values from which `set_state` continues to the last digit."""
        ...

    def set_state(self, state: dict[str, Any]) -> View:
        """Continue from `state` and return the view at that moment."""
        ...

    def render(self) -> np.ndarray | None:
        """Return a picture of the first stream, [H, W, 3] uint8; None if not supported."""
        return None

    def close(self) -> None:
        """Free all resources."""
