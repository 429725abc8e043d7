"""What a world is: N streams that take actions and answer with steps. Numpy only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from surefoot.data.spaces import ActionSpace, ObservationSpace

Arrays = dict[str, np.ndarray]


# Not frozen: one of each is made in every step of a world, and a frozen one takes four times as long to make.
@dataclass(slots=True, kw_only=True)
class View:
    """What the N streams see now, and what each may do."""

    obs: Arrays
    """{name: [N, …]}; a world with one plain observation calls it "obs"."""
    action_mask: np.ndarray | None = None
    """[N, A] bool, True = allowed; A is the number of choices (all heads side by side for MultiDiscrete)."""


@dataclass(slots=True, kw_only=True)
class Step:
    """The answer to one action in each of the N streams."""

    view: View
    """What to act on next: in a stream that ended, already the first view of its next episode
    (or, in a world that resets one step later, still the last view of the old one)."""
    reward: np.ndarray
    """[N] float64, raw."""
    terminated: np.ndarray
    """[N] bool: the episode is over and its future is worth nothing."""
    truncated: np.ndarray
    """[N] bool: the episode was cut short; never together with `terminated`, which wins."""
    valid: np.ndarray
    """[N] bool: False where the action was ignored because the stream was only being reset (a ghost row)."""
    final_obs: Arrays | None = None
    """{name: [N, …]} whose ended rows hold the true successor observation; None if no stream ended."""
    stats: Arrays = field(default_factory=dict[str, np.ndarray])
    """{name: [N]} numbers a world reports; "success" and "whole_return" are read at the end of an episode."""


class World(Protocol):
    """N independent streams of one task.

    A world never raises at the end of an episode: it starts the next one by itself. A class that derives from it has
    nothing to render and nothing to close, and cannot reset single streams, unless it defines these methods.
    """

    name: str
    """The id it was made from, such as "CartPole-v1"."""
    num_envs: int
    observation: ObservationSpace
    action: ActionSpace
    inexact: str | None = None
    """None if `state` is complete, so that a resumed run is bit-exact; else one sentence that says why not."""

    def reset(self, seed: int) -> View:
        """Start N fresh episodes; everything random from here on follows from `seed`."""
        ...

    def step(self, action: np.ndarray) -> Step:
        """Take `action` ([N] int64, [N, K] int64, or [N, *shape] float32 within bounds) in each stream."""
        ...

    def reset_streams(self, streams: np.ndarray) -> View | None:
        """Begin a new episode where `streams` ([N] bool) says so; None if this world cannot."""
        return None

    def state(self) -> dict[str, Any]:
        """A nested dict of numpy arrays and JSON values from which `set_state` goes on to the last digit."""
        ...

    def set_state(self, state: dict[str, Any]) -> View:
        """Go on from where `state` was taken; returns the view at that moment."""
        ...

    def render(self) -> np.ndarray | None:
        """[H, W, 3] uint8 picture of the first stream, or None if this world has none."""
        return None

    def close(self) -> None:
        """Free what the world holds."""
