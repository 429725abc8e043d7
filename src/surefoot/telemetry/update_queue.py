"""Updates that wait for their line: where updates come faster than lines, several share one."""

from __future__ import annotations

import math
from collections.abc import Callable

from surefoot.telemetry.files.merge_updates import PendingUpdate, merge_pending
from surefoot.telemetry.schema import UpdateRecord

_SHARE = 0.002
"""Of the time that lines of updates may take, as long as there are at least `updates_per_second / _LONGEST` of them."""
_LONGEST = 5.0


class UpdateQueue:
    """Holds updates until a line is due: at once for the first `early` lines, then `updates_per_second` at most."""

    def __init__(self, run: str, *, updates_per_second: float, early: int) -> None:
        self._run, self._gap, self._early = run, 1.0 / updates_per_second, early
        self._deferred: list[Callable[[], None]] = []
        self._waiting: list[PendingUpdate] = []
        self._catching_up = False
        self._written_at = -math.inf
        self.line_seconds = 0.0
        """What the last line cost, from merging to writing."""

    def defer(self, tell: Callable[[], None]) -> None:
        """Call `tell`, which adds an update, before the next `take`."""
        self._deferred.append(tell)

    def add(self, update: PendingUpdate) -> None:
        """Append one update to the next line."""
        self._waiting.append(update)

    def is_due(self, now: float) -> bool:
        """Return whether a line may be written now. Lines that cost more are further apart: all take a small share."""
        if self._catching_up:
            return False
        gap = min(max(self._gap, self.line_seconds / _SHARE), _LONGEST * self._gap) if self._early <= 0 else 0.0
        return not 0 <= now - self._written_at < gap  # a clock set back holds nothing up

    def take(self) -> UpdateRecord | None:
        """Return everything that waits as one record; None if nothing does."""
        if self._deferred:
            deferred, self._deferred, self._catching_up = self._deferred, [], True
            try:
                for tell in deferred:
                    tell()
            finally:
                self._catching_up = False
        if not self._waiting:
            return None
        waiting, self._waiting = self._waiting, []
        record = merge_pending(waiting, self._run)
        self._written_at, self._early = record.t, self._early - 1
        return record
