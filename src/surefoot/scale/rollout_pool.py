"""A pool of rollout workers: pending pieces, losses, replacements and repeated requests."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from surefoot.envs.workers.worker_pool import SLOWER, WorkerPool
from surefoot.errors import WorkersLost
from surefoot.scale.backend import Piece, Weights

# Seconds until a pool starts a spare worker: a run that ends earlier does not need one.
SETTLED = 5.0


class Lost(Exception):
    """A worker has ended, or does not answer and must be ended."""

    def __init__(self, *, silent: bool) -> None:
        super().__init__("silent" if silent else "gone")
        self.silent = silent


class RolloutHandle(Protocol):
    """One worker. Methods that wait for it raise `Lost`, or the error that the worker raised."""

    @property
    def process(self) -> int:
        """Its process id on its own machine."""
        ...

    def build(self, number: int, streams: int, generation: int) -> None:
        """Start creating the environments of `streams` streams, without waiting; ignore an ended worker."""

    def ready(self, limit: float) -> None:
        """Wait until the environments are created."""

    def begin(self, weights: Any, version: int) -> None:
        """Start a piece, without waiting; ignore an ended worker."""

    def piece(self, limit: float) -> Piece:
        """Return the piece that `begin` started."""
        ...

    def call(self, command: str, arguments: Sequence[Any], limit: float) -> Any:
        """Return the result of another command."""
        ...

    def end(self, *, silent: bool) -> str | None:
        """End it; return how it had already ended, if known."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Timeouts in seconds. `fixed` is for pieces; None adapts to the slowest so far."""

    piece: float
    start: float
    fixed: float | None = None


class RolloutPool:
    """A `RolloutBackend` on any kind of worker."""

    def __init__(
        self,
        name: str,
        start: Callable[[], RolloutHandle],
        streams: Sequence[int],
        patience: Patience,
        *,
        share: Callable[[Weights], Any] = lambda weights: weights,
        close: Callable[[], None] = lambda: None,
        advice: str = "",
        spare: bool = False,
    ) -> None:
        """`start` starts an idle worker; with `spare`, one more is kept ready for the next loss."""
        self.name, self.workers = name, len(streams)
        self._streams, self._patience, self._share = streams, patience, share
        self._weights: Any = None
        self._version = 0
        self._slowest = 0.0
        self._generation, self._begun_at = [0] * self.workers, [0.0] * self.workers
        self._keeps_spare, self._since = spare, time.monotonic()

        def end(handles: Sequence[RolloutHandle]) -> None:
            for handle in handles:
                handle.end(silent=True)
            close()

        self.pool = WorkerPool(self.workers, start, end)
        try:
            for number in range(self.workers):
                self._build(number)
            for handle in self.pool.workers:
                handle.ready(patience.start)
        except BaseException as error:
            self.close()
            if isinstance(error, Lost):
                raise WorkersLost(
                    f"{self.workers} rollout workers ({name}) did not all start within {patience.start:g} s{advice}"
                ) from error
            raise

    def publish(self, weights: Weights, version: int) -> None:
        self._weights, self._version = self._share(weights), version

    def ask(self) -> None:
        for number in range(self.workers):
            self._ask(number)

    def receive(self) -> list[Piece]:
        pieces: list[Piece] = []
        for number in range(self.workers):
            while len(pieces) == number:
                try:
                    pieces.append(self.pool.workers[number].piece(self._limit))
                except Lost as lost:
                    self._replace(number, lost)
                    self._ask(number)
            self.pool.settled(number)
            self._slowest = max(self._slowest, time.monotonic() - self._begun_at[number])
        if self._keeps_spare and time.monotonic() - self._since > SETTLED:
            self.pool.prepare_spare()
        return pieces

    def states(self) -> list[dict[str, Any]]:
        return [self._call_or_replace(number, "state") for number in range(self.workers)]

    def set_states(self, states: Sequence[dict[str, Any]]) -> None:
        for number, state in enumerate(states):
            self._call_or_replace(number, "set_state", state)
            self._generation[number] = int(state["generation"])

    def take_losses(self) -> list[str]:
        return self.pool.take_losses()

    def close(self) -> None:
        self.pool.close()

    @property
    def processes(self) -> list[int]:
        """Process ids, by worker."""
        return [handle.process for handle in self.pool.workers]

    def _build(self, number: int) -> None:
        self.pool.workers[number].build(number, self._streams[number], self._generation[number])

    def _ask(self, number: int) -> None:
        self._begun_at[number] = time.monotonic()
        self.pool.workers[number].begin(self._weights, self._version)

    def _call_or_replace(self, number: int, command: str, *arguments: Any) -> Any:
        """Return the result of a command; if the worker is lost, of its replacement."""
        while True:
            try:
                limit = max(self._patience.start, self._limit)
                return self.pool.workers[number].call(command, arguments, limit)
            except Lost as lost:
                self._replace(number, lost)

    @property
    def _limit(self) -> float:
        fixed = self._patience.fixed
        return fixed if fixed is not None else max(self._patience.piece, SLOWER * self._slowest)

    def _replace(self, number: int, lost: Lost) -> None:
        """Replace a worker that has ended or does not answer, and wait until the new one is ready."""
        while True:
            why = self.pool.workers[number].end(silent=lost.silent) or f"gave no answer in {self._limit:.3g} s"
            self.pool.lose(
                number,
                f"rollout worker {number + 1} of {self.workers} ({self.name}) {why}",
                consequence="its piece is requested again, in new episodes",
                limit=", so it is not replaced again",
                error=lost,
            )
            self._generation[number] += 1
            handle = self.pool.replace(number)
            self._build(number)
            try:
                return handle.ready(self._patience.start)
            except Lost as again:
                lost = again
