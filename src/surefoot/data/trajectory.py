"""Recorded episodes without log-probs or values: the data of behaviour cloning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from surefoot.data.spaces import ActionSpace, ObservationSpace
from surefoot.errors import RecordingError, ShapeError


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """One episode of T steps and T + 1 observations: the last one is where it ended."""

    obs: dict[str, np.ndarray]
    """{name: [T + 1, …]}"""
    action: np.ndarray
    """[T, …] in the environment's form: clipped, squashed, shifted."""
    reward: np.ndarray
    """[T], raw."""
    terminated: bool
    """The future has value 0. If this and `truncated` are both False, the recording stopped in the middle."""
    truncated: bool
    action_mask: np.ndarray | None = None
    """[T, A] bool, True for allowed actions."""

    def __post_init__(self) -> None:
        steps = len(self.reward)
        if self.reward.ndim != 1 or steps < 1:
            raise ShapeError(f"reward is {list(self.reward.shape)}; an episode has [T] rewards, at least one")
        rows = {"action": (self.action, steps), **{f"obs[{k!r}]": (x, steps + 1) for k, x in self.obs.items()}}
        if self.action_mask is not None:
            rows["action_mask"] = (self.action_mask, steps)
        for name, (array, expected) in rows.items():
            if len(array) != expected:
                raise ShapeError(f"{name} has {len(array)} rows but an episode of {steps} steps needs {expected}")
        if self.terminated and self.truncated:
            raise ShapeError(
                "an episode is both terminated and truncated; set truncated to False: termination takes precedence"
            )

    @property
    def steps(self) -> int:
        """T."""
        return len(self.reward)

    @property
    def return_(self) -> float:
        """The sum of the raw rewards."""
        return float(self.reward.sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """Episodes of one environment, with its spaces."""

    env: str
    observation: ObservationSpace
    action: ActionSpace
    episodes: Sequence[Trajectory]

    def __post_init__(self) -> None:
        if not self.episodes:
            raise RecordingError(f"the recording of {self.env} has no episodes; at least one is needed")

    @property
    def steps(self) -> int:
        return sum(episode.steps for episode in self.episodes)

    @property
    def mean_return(self) -> float:
        return float(np.mean([episode.return_ for episode in self.episodes]))
