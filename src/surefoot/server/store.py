"""What the service must not forget, in one SQLite file: an answer goes out when what it says is on the disk.

Requests that come in together share a commit: one thread writes, and whoever waits is told when it is done.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from surefoot.data.journal import Durability, Entry, Journal
from surefoot.errors import JournalError
from surefoot.server.problems import Refused

__all__ = ["Durability", "Store"]

Waiting = tuple[tuple[Entry, ...], "asyncio.Future[None]"]


class Store:
    """The journal and the thread that writes it. `write` returns once its entries are committed."""

    def __init__(self, path: Path, *, durability: Durability = "disk", backlog: int = 10_000) -> None:
        self.journal = Journal(path, durability=durability)
        self.backlog = backlog
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: list[Waiting] = []
        self._news = threading.Condition()
        self._closing = False
        self._thread: threading.Thread | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to write, for callers in this loop."""
        self._loop = loop
        self._thread = threading.Thread(target=self._write, name="surefoot-store", daemon=True)
        self._thread.start()

    async def write(self, *entries: Entry) -> None:
        """Commit entries together; raises, and nothing is written, if the disk does not take them."""
        assert self._loop is not None, "the store was not started"
        done: asyncio.Future[None] = self._loop.create_future()
        with self._news:
            if self._closing:
                raise Refused("unavailable", "the service is shutting down", headers={"Retry-After": "5"})
            if len(self._waiting) >= self.backlog:
                raise Refused("unavailable", "too much waits to be written", headers={"Retry-After": "1"})
            self._waiting.append((entries, done))
            self._news.notify()
        await done

    def entry(self, kind: str, id: str) -> Entry | None:
        """The entry of that id, or None."""
        return self.journal.get(kind, id)

    def read(self, kind: str, id: str) -> Any | None:
        """The body of an entry, or None."""
        found = self.journal.get(kind, id)
        return None if found is None else found.body

    def all(self, kind: str) -> Iterator[Entry]:
        """Every entry of a kind, oldest first."""
        return self.journal.scan(kind)

    def latest(self, kind: str, count: int, *, tag: str | None = None) -> list[Entry]:
        """The last entries of a kind (and of a tag), oldest first."""
        return self.journal.latest(kind, count, tag=tag)

    def close(self) -> None:
        """Write what waits, then let go of the file."""
        with self._news:
            self._closing = True
            self._news.notify()
        if self._thread is not None:
            self._thread.join()
        self.journal.close()

    def _write(self) -> None:
        assert self._loop is not None
        while True:
            with self._news:
                while not self._waiting and not self._closing:
                    self._news.wait()
                batch, self._waiting = self._waiting, []
                if not batch:
                    return
            error: Exception | None = None
            try:
                self.journal.put(*(entry for entries, _ in batch for entry in entries))
            except (JournalError, sqlite3.Error, OSError) as why:
                error = _refusal(why)
            self._loop.call_soon_threadsafe(_tell, batch, error)


def _tell(batch: list[Waiting], error: Exception | None) -> None:
    for _, done in batch:
        if done.cancelled():
            continue
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)


def _refusal(why: Exception) -> Refused:
    if "full" in str(why):
        return Refused(
            "full", "the disk is full: nothing was stored; make room and try again", headers={"Retry-After": "30"}
        )
    return Refused("unavailable", f"nothing was stored: {why}", headers={"Retry-After": "5"})
