"""Rollout backends: W workers that each step a share of the environments with the last published weights.

Processes of this machine and actors of a Ray cluster keep the same contract; `check_backend` tests it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from surefoot.data.rollout import Rollout
from surefoot.errors import ConfigError
from surefoot.train.collect.episodes import Episode

if TYPE_CHECKING:
    from surefoot.train.spec import RunSpec

Weights = Mapping[str, np.ndarray]
"""A policy's full state_dict, including its normaliser."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """The rollout of one worker: T steps of its streams."""

    worker: int
    serial: str
    """Unique, also over restarts, so that no piece is learned from twice."""
    version: int
    """Version of the policy that acted."""
    rollout: Rollout
    episodes: Sequence[Episode] = ()
    """Finished episodes; `stream` counts from the worker's first stream."""
    steps: int = 0
    """Env steps, without padding."""
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    began_anew: bool = False
    """True if the worker was replaced: its streams do not continue the previous piece."""


class RolloutBackend(Protocol):
    """A pool of rollout workers.

    A worker that dies or hangs is replaced by one that begins new episodes. Its unfinished piece is discarded, never
    used in part, and requested again. An error of the env itself is raised: a new worker would raise it again.
    """

    name: str
    workers: int

    def publish(self, weights: Weights, version: int) -> None:
        """Set the weights for every piece that is requested from now on."""

    def ask(self) -> None:
        """Start a piece in every worker, without waiting."""

    def receive(self) -> list[Piece]:
        """Return the piece of every worker, by worker, from the last `ask`; wait, and replace workers that do not answer."""
        ...

    def states(self) -> list[dict[str, Any]]:
        """Return the state of each worker's streams; no piece may be pending."""
        ...

    def set_states(self, states: Sequence[dict[str, Any]]) -> None:
        """Restore what `states` returned."""

    def take_losses(self) -> list[str]:
        """Return one sentence per worker that was lost since the last call."""
        ...

    def close(self) -> None:
        """End every worker. A second call does nothing."""


def shares(streams: int, workers: int) -> list[int]:
    """Return the number of streams per worker. The sum is `streams`: the number of workers never changes the batch."""
    if workers < 1:
        raise ConfigError(f"workers is {workers}; rollouts need at least 1")
    if workers > streams:
        raise ConfigError(
            f"{workers} workers share envs={streams}; each needs at least one: use fewer workers or more envs"
        )
    each, extra = divmod(streams, workers)
    return [each + (k < extra) for k in range(workers)]


def join(pieces: Sequence[Piece]) -> Rollout:
    """Concatenate the pieces to one rollout, streams in the order of the workers."""
    parts, stats = [piece.rollout.arrays() for piece in pieces], dict[str, float]()
    for piece in pieces:
        for name, value in piece.rollout.stats.items():
            stats[name] = stats.get(name, 0.0) + value
    # If the envs of one worker return no action mask, the joined rollout has none.
    names = [name for name in parts[0] if all(name in part for part in parts)]
    axis = {name: 0 if name.startswith("context.") else 1 for name in names}
    return Rollout.from_arrays({name: np.concatenate([p[name] for p in parts], axis[name]) for name in names}, stats)


# The default of `BackendSpec.worlds`.
WORLDS = "surefoot.train.spec_worlds:world_maker"
_FORM = re.compile(r"(local|ray):([1-9][0-9]{0,3})(?:@(\S+))?")


@dataclass(frozen=True, slots=True)
class BackendSpec:
    """Where rollouts are collected, and by how many workers."""

    kind: Literal["local", "ray"]
    workers: int
    address: str = ""
    """Address of a Ray cluster: "" for the connected one, "here" to start one on this machine, "auto" to find one."""
    insecure: bool = False
    """Accept a cluster without authentication."""
    worlds: str = WORLDS
    """`module:function` that the workers call with the spec; it returns a function that creates environments."""

    @classmethod
    def parse(cls, text: str, *, insecure: bool = False) -> BackendSpec:
        """Return the spec of a text such as local:2 or ray:8@ADDRESS."""
        match = _FORM.fullmatch(text)
        if match is None or (match[1] == "local" and match[3]):
            raise ConfigError(
                f"rollouts is {text!r}; it must be here, local:N (processes of this machine) or ray:N@ADDRESS, with "
                "ADDRESS auto, host:port, or here to start Ray on this machine"
            )
        return cls("ray" if match[1] == "ray" else "local", int(match[2]), match[3] or "", insecure)


def open_backend(spec: RunSpec, placement: BackendSpec) -> RolloutBackend:
    """Start the workers of a placement and wait until they are ready."""
    if placement.kind == "local":
        from surefoot.scale.local_backend import local_backend

        return local_backend(spec, placement.workers, worlds=placement.worlds)
    from surefoot.scale.ray_backend import ray_backend

    return ray_backend(
        spec,
        placement.workers,
        address=placement.address,
        allow_insecure_cluster=placement.insecure,
        worlds=placement.worlds,
    )
