"""Rollouts by processes of this machine; arrays go through shared memory, a pipe carries the rest."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from surefoot.data.rollout import Rollout
from surefoot.envs.workers.shared_memory import new_memory
from surefoot.envs.workers.supervise import raise_failure
from surefoot.envs.workers.worker import serve
from surefoot.envs.workers.worker_pool import Worker
from surefoot.errors import EnvError
from surefoot.scale.backend import STEPWISE, Piece, Weights, shares
from surefoot.scale.backend_spec import WORLDS
from surefoot.scale.shared_arrays import Layout, Shared
from surefoot.scale.worker_ledger import Crew, Lost, Patience

if TYPE_CHECKING:
    from surefoot.scale.rollout_worker import RolloutWorker
    from surefoot.train.spec import RunSpec

PIECE, START = 60.0, 120.0
"""Seconds for a piece, and for a new process to import what it needs and build its world."""
_PROGRAM = (
    "import sys; pipe, memory, *sys.path = sys.argv[1:]; "
    "from surefoot.scale.local_backend import main; main(int(pipe), int(memory))"
)


def local_backend(spec: RunSpec, workers: int, *, timeout: float | None = None, worlds: str = WORLDS) -> Crew:
    """W processes, each with a share of the streams. `timeout` is how long a piece may take; None follows the slowest."""
    told = spec.to_json()

    def hire() -> _Hand:
        return _Hand(told, worlds)

    patience = Patience(piece=PIECE, start=START, fixed=timeout)
    return Crew("local", hire, shares(spec.ppo.envs, workers), patience, spare=True)


class _Hand:
    """One process, its memory, and what lies where in it."""

    def __init__(self, spec: dict[str, Any], worlds: str) -> None:
        self._spec, self._worlds = spec, worlds
        self._file = new_memory()
        self._memory = Shared(self._file)
        self._worker = Worker(0, slice(0), self._file, _PROGRAM)

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
        return replace(piece, rollout=_rollout(self._memory.get(layout), piece.rollout.stats))

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
        self._memory = Shared(memory)
        self._worker: RolloutWorker | None = None

    def build(self, spec: dict[str, Any], number: int, streams: int, generation: int, worlds: str) -> None:
        from surefoot.scale.rollout_worker import RolloutWorker

        self._worker = RolloutWorker(spec, number, streams, generation, worlds)

    def collect(self, layout: Layout, end: int, version: int) -> tuple[Piece, Layout]:
        worker = self._built
        worker.load(self._memory.get(layout))
        piece = worker.collect(version)
        where, _ = self._memory.put(_arrays(piece.rollout), end)
        return replace(piece, rollout=_without_arrays(piece.rollout)), where

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


def _arrays(rollout: Rollout) -> dict[str, np.ndarray]:
    found = {name: getattr(rollout, name) for name in STEPWISE}
    if rollout.action_mask is not None:
        found["action_mask"] = rollout.action_mask
    found |= {f"obs {name}": x for name, x in rollout.obs.items()}
    return found | {f"context {name}": x for name, x in rollout.context.items()}


def _rollout(arrays: dict[str, np.ndarray], stats: dict[str, float]) -> Rollout:
    def group(kind: str) -> dict[str, np.ndarray]:
        return {name.removeprefix(kind): x for name, x in arrays.items() if name.startswith(kind)}

    plain = {name: x for name, x in arrays.items() if " " not in name}
    return Rollout(obs=group("obs "), context=group("context "), stats=stats, **plain)


def _without_arrays(rollout: Rollout) -> Rollout:
    """Only the stats: the rest is in the memory."""
    nothing = np.zeros((0, 0))
    flags = np.zeros((0, 0), dtype=bool)
    given: dict[str, Any] = {n: flags if getattr(rollout, n).dtype.kind == "b" else nothing for n in STEPWISE}
    return Rollout(obs={}, stats=rollout.stats, **given)
