"""What makes rollouts elsewhere: W workers that each walk a share of the streams with the weights they were last given.

Whatever carries the work (processes of this machine, actors of a Ray cluster) keeps the same contract, and one suite of
tests holds every backend to it: see `check_backend`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from surefoot.data.rollout import Rollout
from surefoot.errors import ConfigError
from surefoot.train.collect.episodes import Episode

Weights = Mapping[str, np.ndarray]
"""A policy's whole state_dict, its normaliser included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What one worker made: T steps of its streams."""

    worker: int
    serial: str
    """Names this piece and no other, over restarts too, so that nothing is learned from twice."""
    version: int
    """Of the policy that acted."""
    rollout: Rollout
    episodes: Sequence[Episode] = ()
    """Those that ended, with streams counted from the worker's first."""
    steps: int = 0
    """Real env steps."""
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    began_anew: bool = False
    """True if its streams do not go on from the worker's last piece: the worker was replaced."""


class RolloutBackend(Protocol):
    """Workers that make rollouts.

    A worker that dies or hangs is replaced by one that begins new episodes; what it was at is lost, never half used,
    and is asked for again. An error of the env itself is raised: a new worker would only meet it again.
    """

    name: str
    workers: int

    def publish(self, weights: Weights, version: int) -> None:
        """What every piece asked for from now on is to be made with."""
        ...

    def ask(self) -> None:
        """Every worker begins a piece; returns at once."""
        ...

    def hear(self) -> list[Piece]:
        """One piece of every worker, by worker, from the last `ask`; waits, and replaces whoever does not answer."""
        ...

    def states(self) -> list[dict[str, Any]]:
        """Where each worker's streams are; nothing may be under way."""
        ...

    def set_states(self, states: Sequence[dict[str, Any]]) -> None:
        """Go on from where `states` were taken."""
        ...

    def take_losses(self) -> list[str]:
        """A sentence for each worker that was lost since last asked."""
        ...

    def close(self) -> None:
        """End every worker. A second close does nothing."""
        ...


def shares(streams: int, workers: int) -> list[int]:
    """How many streams each worker walks. They add up: another number of workers never changes the batch."""
    if workers < 1:
        raise ConfigError(f"workers is {workers}; rollouts need at least 1")
    if workers > streams:
        raise ConfigError(
            f"{workers} workers share envs={streams}; give each at least one, with fewer workers or more envs"
        )
    each, over = divmod(streams, workers)
    return [each + (k < over) for k in range(workers)]


def join(pieces: Sequence[Piece]) -> Rollout:
    """The pieces side by side as one rollout, streams in the order of the workers."""
    parts, stats = [piece.rollout.arrays() for piece in pieces], dict[str, float]()
    for piece in pieces:
        for name, value in piece.rollout.stats.items():
            stats[name] = stats.get(name, 0.0) + value
    # Where a worker's envs gave no mask, the whole rollout has none.
    names = [name for name in parts[0] if all(name in part for part in parts)]
    axis = {name: 0 if name.startswith("context.") else 1 for name in names}
    return Rollout.from_arrays({name: np.concatenate([p[name] for p in parts], axis[name]) for name in names}, stats)
