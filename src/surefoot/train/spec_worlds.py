"""The worlds of a spec, by its env's name. Nothing here imports code that a name refers to; `train.worlds` does."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from surefoot.envs.api import World
from surefoot.envs.make import make_world
from surefoot.envs.workers.placement import Workers
from surefoot.train.spec import RunSpec


class WorldMaker(Protocol):
    """Makes worlds of one kind, with a number of streams and of worker processes."""

    def __call__(self, streams: int, workers: Workers = 0, /) -> World: ...


@runtime_checkable
class Counting(Protocol):
    """A world that counts events."""

    def take_counts(self) -> dict[str, float]:
        """Return the counts since the last call, by name; they go into the report's stats."""
        ...


def world_maker(spec: RunSpec) -> WorldMaker:
    def make(streams: int, workers: Workers = 0, /) -> World:
        kwargs = spec.env_kwargs or None
        return make_world(spec.env, streams, backend=spec.backend, env_kwargs=kwargs, workers=workers)

    return make
