"""Rollouts by processes of this machine; arrays go through shared memory, a pipe carries the rest."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from surefoot.data.rollout import Rollout
from surefoot.envs.workers.shared_memory import Layout, SharedArrays, new_memory
from surefoot.envs.workers.worker_process import WorkerProcess, raise_failure, serve
from surefoot.errors import EnvError
from surefoot.scale.backend import Piece, Weights, shares
from surefoot.scale.backend_spec import WORLDS
from surefoot.scale.rollout_pool import Lost, Patience, RolloutPool

if TYPE_CHECKING:
    from surefoot.scale.rollout_worker import RolloutWorker
    from surefoot.train.spec import RunSpec

PIECE, START = 60.0, 120.0
"""Seconds for a piece, and for a new process to import what it needs and build its world."""
TARGET = "surefoot.scale.local_backend"
"""What a worker process runs: `main` of this module."""


def local_backend(spec: RunSpec, workers: int, *, timeout: float | None = None, worlds: str = WORLDS) -> RolloutPool:
    """W processes, each with a share of the streams. `timeout` is how long a piece may take; None follows the slowest."""
    told = spec.to_json()

    def start() -> _Handle:
        return _Handle(told, worlds)

    patience = Patience(piece=PIECE, start=START, fixed=timeout)
    return RolloutPool("local", start, shares(spec.ppo.envs, workers), patience, spare=True)


class _Handle:
    """One process, its memory, and what lies where in it."""

    def __init__(self, spec: dict[str, Any], worlds: str) -> None:
        self._spec, self._worlds = spec, worlds
        self._file = new_memory()
        self._memory = SharedArrays(self._file)
        self._worker = WorkerProcess(TARGET, self._file)

    @property
    def process(self) -> int:
        return self._worker.process.pid

    def build(self, number: int, streams: int, generation: int) -> None:
        self._ask("build", (self._spec, number, streams, generation, self._worlds))

    def ready(self, limit: float) -> None:
        self._answer(limit)

    def begin(self, weights: Weights, version: int) -> None:
        layout, end = self._memory.put(weights)
        self._ask("collect", (layout, end, version))

    def piece(self, limit: float) -> Piece:
        piece, layout = self._answer(limit)
        return replace(piece, rollout=Rollout.from_arrays(self._memory.get(layout), piece.rollout.stats))

    def call(self, command: str, arguments: Sequence[Any], limit: float) -> Any:
        self._ask(command, arguments)
        return self._answer(limit)

    def end(self, *, silent: bool) -> str | None:
        why = self._worker.end(silent=silent)
        with suppress(OSError):
            os.close(self._file)
        return why

    def _ask(self, command: str, arguments: Sequence[Any]) -> None:
        with suppress(OSError):  # whoever listens to it will notice
            self._worker.ask(command, tuple(arguments))

    def _answer(self, limit: float) -> Any:
        try:
            answer = self._worker.hear(limit)
        except (EOFError, OSError) as why:
            raise Lost(silent=isinstance(why, TimeoutError | BlockingIOError)) from why
        raise_failure(answer)
        return answer


class _Share:
    """The other end: its public methods are what the parent may ask for."""

    def __init__(self, memory: int) -> None:
        self._memory = SharedArrays(memory)
        self._worker: RolloutWorker | None = None

    def build(self, spec: dict[str, Any], number: int, streams: int, generation: int, worlds: str) -> None:
        from surefoot.scale.rollout_worker import RolloutWorker

        self._worker = RolloutWorker(spec, number, streams, generation, worlds)

    def collect(self, layout: Layout, end: int, version: int) -> tuple[Piece, Layout]:
        worker = self._built
        worker.load(self._memory.get(layout))
        piece = worker.collect(version)
        arrays = piece.rollout.arrays()
        where, _ = self._memory.put(arrays, end)
        # Only the stats go through the pipe: an empty rollout carries them.
        empty = {name: x[:0] for name, x in arrays.items() if not name.startswith("context.")}
        return replace(piece, rollout=Rollout.from_arrays(empty, piece.rollout.stats)), where

    def state(self) -> dict[str, Any]:
        return self._built.state()

    def set_state(self, state: dict[str, Any]) -> None:
        self._built.set_state(state)

    def step(self) -> None:
        raise EnvError("a rollout worker makes whole pieces; nobody asks it for single steps")

    def close(self) -> None:
        if self._worker is not None:
            self._worker.close()

    @property
    def _built(self) -> RolloutWorker:
        assert self._worker is not None
        return self._worker


def main(pipe: int, memory: int) -> None:
    """What a worker process runs."""
    importlib.import_module("surefoot.scale.rollout_worker")  # now, as a spare has the time
    serve(pipe, memory, _Share(memory))
