"""The books of every backend: who was asked, who is lost, who takes the place. How a worker is reached is a hand's affair."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from surefoot.errors import WorkersLost
from surefoot.scale.backend import Piece, Weights

SLOWER = 10.0
"""A piece may take this many times as long as the slowest one so far."""
SETTLED = 5.0
"""Seconds after which a crew is worth a spare worker: a run that is over by then needs none."""
TRIES = 5
"""Losses of one worker in a row, without a piece in between, after which it is not replaced again."""


class Lost(Exception):
    """A worker is gone; or only silent, and has to be ended."""

    def __init__(self, *, silent: bool) -> None:
        super().__init__("silent" if silent else "gone")
        self.silent = silent


class Hand(Protocol):
    """One worker. What waits for it raises Lost, or the error that the worker itself met."""

    @property
    def process(self) -> int:
        """Its process id, which means something on the machine that it is on."""
        ...

    def build(self, number: int, streams: int, generation: int) -> None:
        """Have it build its world, for so many streams; returns at once, also if it is gone."""
        ...

    def ready(self, limit: float) -> None:
        """Wait until its world is built."""
        ...

    def begin(self, weights: Any, version: int) -> None:
        """Have it begin a piece; returns at once, also if it is gone."""
        ...

    def piece(self, limit: float) -> Piece:
        """What it was asked to begin."""
        ...

    def call(self, command: str, arguments: Sequence[Any], limit: float) -> Any:
        """Its answer to something else."""
        ...

    def end(self, *, silent: bool) -> str | None:
        """Have it gone; says what became of it before, if that is known."""
        ...


Hire = Callable[[], Hand]
"""Starts a worker that has nothing to do yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long is waited, in seconds. `fixed` is for pieces; None follows the slowest so far."""

    piece: float
    start: float
    fixed: float | None = None


class Crew:
    """A rollout backend, whatever its workers are."""

    def __init__(
        self,
        name: str,
        hire: Hire,
        streams: Sequence[int],
        patience: Patience,
        *,
        share: Callable[[Weights], Any] = lambda weights: weights,
        close: Callable[[], None] = lambda: None,
        advice: str = "",
        spare: bool = False,
    ) -> None:
        """`spare` keeps one more worker that waits for the next loss: to start one takes seconds, most of them for imports."""
        self.name, self.workers = name, len(streams)
        self._hire, self._streams, self._patience, self._advice = hire, streams, patience, advice
        self._share, self._after = share, close
        self._weights: Any = None
        self._version = 0
        self._slowest = 0.0
        self._losses: list[str] = []
        self._in_a_row, self._generation = [0] * self.workers, [0] * self.workers
        self._asked = [0.0] * self.workers
        self._closed = False
        self._hands: list[Hand] = []
        self._keeps_spare, self._since = spare, time.monotonic()
        self._spare: Hand | None = None
        try:
            for number in range(self.workers):
                self._hands.append(self._placed(number))
            for hand in self._hands:
                hand.ready(patience.start)
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

    def hear(self) -> list[Piece]:
        pieces = [self._piece(number) for number in range(self.workers)]
        if self._keeps_spare and self._spare is None and time.monotonic() - self._since > SETTLED:
            self._spare = self._hire()
        return pieces

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
        for hand in (*self._hands, *([self._spare] if self._spare is not None else [])):
            hand.end(silent=True)
        self._after()

    @property
    def processes(self) -> list[int]:
        """Process ids, by worker."""
        return [hand.process for hand in self._hands]

    def _placed(self, number: int) -> Hand:
        """A worker on its way to be this one: the spare one, or a new one."""
        hand, self._spare = self._spare or self._hire(), None
        hand.build(number, self._streams[number], self._generation[number])
        return hand

    def _ask(self, number: int) -> None:
        self._asked[number] = time.monotonic()
        self._hands[number].begin(self._weights, self._version)

    def _piece(self, number: int) -> Piece:
        while True:
            try:
                piece = self._hands[number].piece(self._limit)
            except Lost as lost:
                self._replace(number, lost)
                self._ask(number)
                continue
            self._in_a_row[number] = 0
            self._slowest = max(self._slowest, time.monotonic() - self._asked[number])
            return piece

    def _insist(self, number: int, command: str, *arguments: Any) -> Any:
        """The answer of a worker; of the one in its place, if it is lost on the way."""
        while True:
            try:
                return self._hands[number].call(command, arguments, max(self._patience.start, self._limit))
            except Lost as lost:
                self._replace(number, lost)

    @property
    def _limit(self) -> float:
        fixed = self._patience.fixed
        return fixed if fixed is not None else max(self._patience.piece, SLOWER * self._slowest)

    def _replace(self, number: int, lost: Lost) -> None:
        """Another worker in the place of one that is gone or silent."""
        while True:
            why = self._hands[number].end(silent=lost.silent) or f"gave no answer in {self._limit:.3g} s"
            what = f"rollout worker {number + 1} of {self.workers} ({self.name}) {why}"
            self._in_a_row[number] += 1
            if self._in_a_row[number] >= TRIES:
                raise WorkersLost(f"{what}; that is the {TRIES}th time in a row, so it is not replaced again") from lost
            self._losses.append(f"{what}; what it was at is asked for again, in new episodes")
            self._generation[number] += 1
            self._hands[number] = self._placed(number)
            try:
                self._hands[number].ready(self._patience.start)
            except Lost as again:
                lost = again
                continue
            return
