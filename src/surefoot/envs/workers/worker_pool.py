"""Worker bookkeeping for env workers and rollout workers: who works, who is lost, who takes the place.

How a worker is reached (a pipe, a Ray actor) is up to the handle.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from surefoot.errors import WorkersLost

TRIES = 5
"""Early losses in a row of one worker after which it is not replaced again."""
SLOWER = 10.0
"""An answer may take this many times as long as the slowest one that is known."""

Handle = TypeVar("Handle")


class WorkerPool(Generic[Handle]):
    """W workers, by number from 0, and perhaps a spare one that waits for the next loss.

    `start` starts a worker that has nothing to do yet, `usable` says whether a spare one is still there, and `end` ends
    workers. A pool outlives what it works for as long as it takes to end them.
    """

    def __init__(
        self,
        count: int,
        start: Callable[[], Handle],
        end: Callable[[Sequence[Handle]], None],
        usable: Callable[[Handle], bool] = lambda worker: True,
    ) -> None:
        self._start, self._end, self._usable = start, end, usable
        self._owner, self._closed = os.getpid(), False
        self.spare: Handle | None = None
        self.lost = 0
        """How many workers were lost so far."""
        self.over: str | None = None
        """Why no worker is replaced any more."""
        self._in_a_row = [0] * count
        self._sentences: list[str] = []
        self.workers: list[Handle] = []
        try:
            for _ in range(count):
                self.workers.append(start())
        except BaseException:
            self.close()
            raise

    def take_losses(self) -> list[str]:
        """Return one sentence per worker that was lost since the last call."""
        sentences, self._sentences = self._sentences, []
        return sentences

    def prepare_spare(self) -> None:
        """Start a worker for the next loss: a new Python takes a second or two where cores are busy."""
        if self.spare is None:
            self.spare = self._start()

    def settled(self, number: int) -> None:
        """Forget the losses of a worker: it has worked since."""
        self._in_a_row[number] = 0

    def lose(
        self, number: int, what: str, *, consequence: str, limit: str, error: BaseException, early: bool = True
    ) -> None:
        """Count a loss; raise `WorkersLost` if this worker was lost `early` too often in a row.

        `what` happened and its `consequence` make the sentence about it; `limit` is what is said where it is the last.
        """
        self.lost += 1
        self._in_a_row[number] = self._in_a_row[number] + 1 if early else 0
        if self._in_a_row[number] >= TRIES:
            self.give_up(f"{what}; that is the {TRIES}th time in a row{limit}", error)
        self._sentences.append(f"{what}; {consequence}")

    def give_up(self, why: str, error: BaseException) -> None:
        """Replace nobody any more, and raise `WorkersLost`."""
        self.over = why
        raise WorkersLost(why) from error

    def replace(self, number: int) -> Handle:
        """Put the spare worker, or a new one, in the place of one that has ended, and return it."""
        new, self.spare = self.spare, None
        if new is None or not self._usable(new):
            new = self._start()
        self.workers[number] = new
        return new

    def close(self) -> None:
        """End every worker. Does nothing a second time, nor in a fork of the process that started them."""
        if self._closed or os.getpid() != self._owner:
            return
        self._closed = True
        self._end([*self.workers, *([] if self.spare is None else [self.spare])])
