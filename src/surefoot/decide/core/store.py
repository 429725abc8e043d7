"""Where finished decisions wait to be learned from: in memory, or in a journal on disk."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from surefoot.data.journal import Entry, Journal
from surefoot.decide.core.record import DecisionRecord

KIND = "episode"
"""Kind of the journal's entries."""
# Records that learning takes from memory; beyond it, it reads them back from the journal.
_RECENT = 10_000


class Finished(NamedTuple):
    """A decision with its outcome."""

    position: int
    """Grows with every outcome: learning continues after the last position it has seen."""
    record: DecisionRecord
    reward: float
    """0 … 1."""


class DecisionStore(Protocol):
    """Keeps decisions with their outcomes until they are learned from."""

    def add(self, record: DecisionRecord, reward: float) -> None:
        """Keep a finished decision; a durable store has it on disk when this returns."""
        ...

    def finished(self, after: int) -> list[Finished]:
        """Return what came after a position, oldest first; nothing up to it is requested again."""
        ...


class MemoryStore:
    """Finished decisions in memory, until they are learned from."""

    def __init__(self) -> None:
        self._finished: deque[Finished] = deque()
        self._last = 0
        self._lock = threading.Lock()

    def add(self, record: DecisionRecord, reward: float) -> None:
        with self._lock:
            self._last += 1
            self._finished.append(Finished(self._last, record, reward))

    def finished(self, after: int) -> list[Finished]:
        with self._lock:
            # The caller has learned from these; without this, memory would grow with every outcome.
            while self._finished and self._finished[0].position <= after:
                self._finished.popleft()
            return list(self._finished)


def record_in(entry: Entry) -> DecisionRecord | None:
    """Return the decision of a journal entry; None if it has none."""
    header = entry.body["decision"]
    return None if header is None else DecisionRecord.unpack(header, entry.raw or b"", id=entry.id)


class JournalStore:
    """Finished decisions in a SQLite journal: on disk when `add` returns, and read back by the next process.

    Within `grace` seconds, another outcome of a decision replaces the first one, and nothing is learned before that time
    is over. `decode` reads the record of an entry; the default reads what `add` wrote.
    """

    def __init__(
        self, path: str | Path, *, grace: float = 0.0, decode: Callable[[Entry], DecisionRecord | None] = record_in
    ) -> None:
        self.journal, self.grace = Journal(path), grace
        self._decode = decode
        self._recent: OrderedDict[str, DecisionRecord] = OrderedDict()

    def add(self, record: DecisionRecord, reward: float) -> None:
        self.put(record.id, record, reward)

    def put(
        self,
        id: str,
        record: DecisionRecord | None,
        reward: float,
        details: Mapping[str, Any] | None = None,
        *,
        tag: str = "",
        number: float | None = None,
    ) -> None:
        """Write an outcome with further JSON `details`; one without a record is kept and never learned from."""
        header, raw = (None, None) if record is None else record.pack()
        body = {"decision": header, "reward": reward, **(details or {})}
        self.journal.put(Entry(kind=KIND, id=id, tag=tag, number=number, body=body, raw=raw))
        # After the write: a record that is not on disk must not be learned from.
        if record is not None:
            self._recent[id] = record
            while len(self._recent) > _RECENT:
                self._recent.popitem(last=False)

    def finished(self, after: int) -> list[Finished]:
        until, finished = time.time() - self.grace, list[Finished]()
        for entry in self.journal.scan(KIND, after):
            # Not skipped: a later entry would move the cursor beyond this one, which would never be learned from.
            if entry.t > until:
                break
            record = self._recent.pop(entry.id, None) or self._decode(entry)
            if record is not None:
                finished.append(Finished(entry.seq, record, float(entry.body["reward"])))
        return finished
