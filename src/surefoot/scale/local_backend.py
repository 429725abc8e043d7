"""Rollouts by processes of this machine; arrays go through shared memory, everything else through a pipe."""

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
from surefoot.scale.backend import WORLDS, Piece, Weights, shares
from surefoot.scale.rollout_pool import Lost, Patience, RolloutPool

if TYPE_CHECKING:
    from surefoot.scale.rollout_worker import RolloutWorker
    from surefoot.train.spec import RunSpec

# Timeouts in seconds: for a piece, and for a new process to import torch and create its environments. A slow worker that
# is replaced too early loses its episodes; one that hangs delays the run this long.
PIECE, START = 60.0, 120.0
# Worker processes run `main` of this module.
TARGET = "surefoot.scale.local_backend"


def local_backend(spec: RunSpec, workers: int, *, timeout: float | None = None, worlds: str = WORLDS) -> RolloutPool:
    """Start W processes, each with a share of the streams. `timeout` of a piece in seconds; None adapts to the slowest."""
    settings = spec.to_json()

    def start() -> _Handle:
        return _Handle(settings, worlds)

    patience = Patience(piece=PIECE, start=START, fixed=timeout)
    return RolloutPool("local", start, shares(spec.ppo.envs, workers), patience, spare=True)


class _Handle:
    """One worker process and its shared memory."""

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
        with suppress(OSError):  # `_answer` notices that the process is gone
            self._worker.ask(command, tuple(arguments))

    def _answer(self, limit: float) -> Any:
        try:
            answer = self._worker.receive(limit)
        except (EOFError, OSError) as why:
            raise Lost(silent=isinstance(why, TimeoutError | BlockingIOError)) from why
        raise_failure(answer)
        return answer


class _Share:
    """The worker's side: the parent calls its public methods."""

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
        position, _ = self._memory.put(arrays, end)
        # Only the stats go through the pipe: an empty rollout carries them.
        empty = {name: x[:0] for name, x in arrays.items() if not name.startswith("context.")}
        return replace(piece, rollout=Rollout.from_arrays(empty, piece.rollout.stats)), position

    def state(self) -> dict[str, Any]:
        return self._built.state()

    def set_state(self, state: dict[str, Any]) -> None:
        self._built.set_state(state)

    def step(self) -> None:
        raise EnvError("a rollout worker returns complete pieces; it has no single steps")

    def close(self) -> None:
        if self._worker is not None:
            self._worker.close()

    @property
    def _built(self) -> RolloutWorker:
        assert self._worker is not None
        return self._worker


def main(pipe: int, memory: int) -> None:
    """Run a worker process."""
    importlib.import_module("surefoot.scale.rollout_worker")  # early: a spare worker imports torch before it is needed
    serve(pipe, memory, _Share(memory))
