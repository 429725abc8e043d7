"""A good store passes its check; each way to be a bad one is found and named."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from surefoot import check_store
from surefoot.data.journal import Entry, Journal


def test_the_journal_passes():
    assert check_store(Journal, kills=2) == []


class Forgetful(Journal):
    """Says yes and waits for company; whoever reads or closes gets it written after all."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.held, self.mine = list[Entry](), threading.RLock()

    def put(self, *entries: Entry) -> None:
        with self.mine:
            msgspec.json.encode([e.body for e in entries])
            self.held += entries
            if len(self.held) >= 6:
                self.flush()

    def flush(self) -> None:
        with self.mine:
            held, self.held = self.held, []
            super().put(*held)

    def get(self, kind: str, id: str) -> Entry | None:
        self.flush()
        return super().get(kind, id)

    def scan(self, kind: str, after: int = 0, limit: int | None = None) -> Any:
        self.flush()
        return super().scan(kind, after, limit)

    def close(self) -> None:
        if not self.closed:
            self.flush()
        super().close()


class OneByOne(Journal):
    """Entries of one put are written one after the other."""

    def put(self, *entries: Entry) -> None:
        for entry in entries:
            super().put(entry)


class Doubling(Journal):
    """An id that comes again is written once more."""

    def scan(self, kind: str, after: int = 0, limit: int | None = None) -> Any:
        return [e for entry in super().scan(kind, after, limit) for e in (entry, entry)]


class Anything(Journal):
    """Bodies that are no JSON are stored as their text."""

    def put(self, *entries: Entry) -> None:
        super().put(*(Entry(kind=e.kind, id=e.id, body=str(e.body), number=e.number, raw=e.raw) for e in entries))


class Alone(Journal):
    """Only the thread that opened it may write."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._db = sqlite3.connect(path, isolation_level=None)


@pytest.mark.parametrize(
    ("store", "said"),
    [
        (Forgetful, "acknowledged entries are lost"),
        (OneByOne, "all of its entries or none"),
        (Doubling, "must exist once|in the order of their put"),
        (Anything, "not JSON|must be unchanged"),
        (Alone, "other threads"),
    ],
)
def test_a_store_that_breaks_its_promise_is_found_out(store: Any, said: str):
    found = check_store(store, kills=3)
    assert found
    assert any(sentence for sentence in found for part in said.split("|") if part in sentence), found


def test_a_store_that_cannot_be_opened_is_a_finding_and_no_error():
    def broken(path: Path) -> Journal:
        raise OSError("no such drive")

    assert any("no such drive" in sentence for sentence in check_store(broken))
