"""Worker bookkeeping for env workers and rollout workers: running workers, losses, replacements.

How to communicate with a worker (a pipe, a Ray actor) is up to the handle.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from surefoot.errors import WorkersLost

# Early losses of one worker in a row after which it is not replaced again. Fewer would end runs on a machine that is
# short of memory for a moment; more would only delay the error of a broken env.
TRIES = 5
# A response may take this many times as long as the slowest one so far: episodes differ, and machines are shared.
SLOWER = 10.0

Handle = TypeVar("Handle")


class WorkerPool(Generic[Handle]):
    """W workers, numbered from 0, and possibly a spare one for the next loss.

    `start` starts an idle worker, `usable` returns whether a spare one still runs, and `end` ends workers.
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
        """Number of workers that were lost so far."""
        self.over: str | None = None
        """Why no worker is replaced any more; None while they are."""
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
        """Reset the count of a worker's losses in a row, because it has worked since."""
        self._in_a_row[number] = 0

    def lose(
        self, number: int, what: str, *, consequence: str, limit: str, error: BaseException, early: bool = True
    ) -> None:
        """Count a loss; raise `WorkersLost` if this worker was lost `early` too often in a row.

        The sentence about it is `what` and `consequence`; the error ends with `limit` instead.
        """
        self.lost += 1
        self._in_a_row[number] = self._in_a_row[number] + 1 if early else 0
        if self._in_a_row[number] >= TRIES:
            self.give_up(f"{what}; that is the {TRIES}th time in a row{limit}", error)
        self._sentences.append(f"{what}; {consequence}")

    def give_up(self, why: str, error: BaseException) -> None:
        """Stop replacing workers, and raise `WorkersLost`."""
        self.over = why
        raise WorkersLost(why) from error

    def replace(self, number: int) -> Handle:
        """Replace a worker that has ended by the spare one or a new one, and return it."""
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
