"""Rollouts by processes of this machine; arrays go through shared memory, a pipe carries the rest."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from surefoot.data.rollout import Rollout
from surefoot.envs.board import new_memory
from surefoot.envs.crew import Worker
from surefoot.envs.supervise import raise_failure
from surefoot.envs.worker import serve
from surefoot.errors import EnvError, WorkersLost
from surefoot.scale.backend import STEPWISE, Piece, Weights, shares
from surefoot.scale.choose import WORLDS
from surefoot.scale.memory import Layout, Shared

if TYPE_CHECKING:
    from surefoot.scale.worker import RolloutWorker
    from surefoot.train.spec import RunSpec

TIMEOUT = 60.0
"""Seconds for a piece, unless pieces have been slower than that."""
SLOWER = 10.0
"""A piece may take this many times as long as the slowest one so far."""
START = 120.0
"""Seconds that a new process has to import what it needs and build its world."""
TRIES = 5
"""Losses of one worker in a row, without a piece in between, after which it is not replaced again."""
_PROGRAM = (
    "import sys; pipe, memory, *sys.path = sys.argv[1:]; "
    "from surefoot.scale.local import main; main(int(pipe), int(memory))"
)


class LocalBackend:
    """W processes, each with a share of the streams. `timeout` is how long a piece may take; None follows the slowest."""

    name = "local"

    def __init__(self, spec: RunSpec, workers: int, *, timeout: float | None = None, worlds: str = WORLDS) -> None:
        self.workers, self.timeout, self._worlds = workers, timeout, worlds
        self._spec, self._streams = spec.to_json(), shares(spec.ppo.envs, workers)
        self._weights: Weights = {}
        self._version = 0
        self._slowest = 0.0
        self._losses: list[str] = []
        self._in_a_row = [0] * workers
        self._generation = [0] * workers
        self._begun: list[float] = [0.0] * workers
        self._closed = False
        self._hands: list[_Hand] = []
        try:
            for number, streams in enumerate(self._streams):
                self._hands.append(_Hand(number, self._spec, streams, 0, worlds))
            for hand in self._hands:
                raise_failure(self._answer(hand, START))
        except BaseException:
            self.close()
            raise

    def publish(self, weights: Weights, version: int) -> None:
        self._weights, self._version = weights, version

    def ask(self) -> None:
        for number in range(self.workers):
            self._ask(number)

    def hear(self) -> list[Piece]:
        return [self._piece(number) for number in range(self.workers)]

    def states(self) -> list[dict[str, Any]]:
        return [self._insist(number, "state") for number in range(self.workers)]

    def set_states(self, states: Sequence[dict[str, Any]]) -> None:
        for number, state in enumerate(states):
            self._insist(number, "set_state", state)
            self._generation[number] = int(state["generation"])

    def take_losses(self) -> list[str]:
        said, self._losses = self._losses, []
        return said

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        for hand in self._hands:
            hand.end(silent=True)

    @property
    def processes(self) -> list[int]:
        """Process ids, by worker."""
        return [hand.worker.process.pid for hand in self._hands]

    def _ask(self, number: int) -> None:
        self._begun[number] = time.monotonic()
        with suppress(OSError):  # whoever listens to it will notice
            self._hands[number].begin(self._weights, self._version)

    def _piece(self, number: int) -> Piece:
        while True:
            hand = self._hands[number]
            try:
                answer = self._answer(hand, self._limit)
            except (EOFError, OSError) as why:
                self._replace(number, why)
                self._ask(number)
                continue
            raise_failure(answer)
            self._in_a_row[number] = 0
            self._slowest = max(self._slowest, time.monotonic() - self._begun[number])
            return hand.piece(*answer)

    def _insist(self, number: int, command: str, *arguments: Any) -> Any:
        """The answer of a worker; of the one in its place, if it is lost on the way."""
        while True:
            hand = self._hands[number]
            try:
                hand.worker.ask(command, arguments)
                answer = self._answer(hand, max(START, self._limit))
            except (EOFError, OSError) as why:
                self._replace(number, why)
                continue
            raise_failure(answer)
            return answer

    @property
    def _limit(self) -> float:
        return self.timeout if self.timeout is not None else max(TIMEOUT, SLOWER * self._slowest)

    def _answer(self, hand: _Hand, limit: float) -> Any:
        return hand.worker.hear(limit)

    def _replace(self, number: int, error: Exception) -> None:
        """Another process in the place of one that is gone or silent."""
        while True:
            hand = self._hands[number]
            why = hand.end(silent=isinstance(error, TimeoutError | BlockingIOError))
            what = f"rollout worker {number + 1} of {self.workers} {why or f'gave no answer in {self._limit:.3g} s'}"
            self._in_a_row[number] += 1
            if self._in_a_row[number] >= TRIES:
                raise WorkersLost(
                    f"{what}; that is the {TRIES}th time in a row, so it is not replaced again"
                ) from error
            self._losses.append(f"{what}; what it was at is asked for again, in new episodes")
            self._generation[number] += 1
            new = _Hand(number, self._spec, self._streams[number], self._generation[number], self._worlds)
            self._hands[number] = new
            try:
                raise_failure(self._answer(new, START))
            except (EOFError, OSError) as again:
                error = again
                continue
            return


class _Hand:
    """One process, its memory, and what lies where in it."""

    def __init__(self, number: int, spec: dict[str, Any], streams: int, generation: int, worlds: str) -> None:
        self._file = new_memory()
        self._memory = Shared(self._file)
        self.worker = Worker(number, slice(0, streams), self._file, _PROGRAM)
        with suppress(OSError):
            self.worker.ask("build", (spec, number, streams, generation, worlds))

    def begin(self, weights: Weights, version: int) -> None:
        layout, end = self._memory.put(weights)
        self.worker.ask("collect", (layout, end, version))

    def piece(self, piece: Piece, layout: Layout) -> Piece:
        return replace(piece, rollout=_rollout(self._memory.get(layout), piece.rollout.stats))

    def end(self, *, silent: bool) -> str | None:
        why = self.worker.end(silent=silent)
        with suppress(OSError):
            os.close(self._file)
        return why


class _Share:
    """The other end: its public methods are what the parent may ask for."""

    def __init__(self, memory: int) -> None:
        self._memory = Shared(memory)
        self._worker: RolloutWorker | None = None

    def build(self, spec: dict[str, Any], number: int, streams: int, generation: int, worlds: str) -> None:
        from surefoot.scale.worker import RolloutWorker

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
