"""What the service must not forget, in one SQLite file: an answer goes out when what it says is on the disk.

Requests that come in together share a commit. The event loop writes it into SQLite's write-ahead log, which takes
microseconds; a thread waits for the disk, which takes milliseconds, and what comes in meanwhile is the next commit.
"""

from __future__ import annotations

import asyncio
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from surefoot.data.journal import Durability, Entry, Journal, Row, row_of
from surefoot.errors import JournalError
from surefoot.server.http.problems import Refused

__all__ = ["Durability", "Store"]

Then = Callable[[Exception | None], None]
"""Called once with None when it is committed, or with why it is not."""
Group = list[tuple[Sequence[Row], Then]]

PAGE = 8192
"""Bytes of a page of the file: an embedding of 1,536 numbers fits into one."""
FOLD_EVERY = 0.25
FOLD_BYTES, HOLD_BYTES = 8 << 20, 32 << 20
"""From how long a write-ahead log on it is folded into the file beside the writer, and with the writer waiting."""


class Store:
    """The journal and who waits for it. `write` returns, `submit` calls back, once entries are committed."""

    def __init__(self, path: Path, *, durability: Durability = "disk", backlog: int = 10_000) -> None:
        # Not FULL: what FULL adds is to wait for the disk after each commit, and that is done here, in a thread.
        self.journal = Journal(path, durability="process", page_size=PAGE)
        self.journal.disable_auto_checkpoint()
        self.reader = Journal(path, durability="process")
        """For long reads, which must not keep the writer waiting."""
        self.durability, self.backlog = durability, backlog
        self._log = os.open(f"{path}-wal", os.O_RDWR | os.O_CREAT, 0o644)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: Group = []
        self._syncing: Group = []
        self._held = False
        self._grown = 0
        """Bytes that were written since the log was last folded."""
        self._closing = False
        self._orders: queue.SimpleQueue[bool] = queue.SimpleQueue()
        """True: sync the log. False: end the thread."""
        self._thread: threading.Thread | None = None
        self._folder: threading.Thread | None = None
        self._over = threading.Event()

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to write, for callers in this loop."""
        self._loop = loop
        self._thread = threading.Thread(target=self._sync_for_ever, args=(loop,), name="surefoot-disk", daemon=True)
        self._thread.start()
        self._folder = threading.Thread(target=self._fold_for_ever, name="surefoot-fold", daemon=True)
        self._folder.start()

    async def write(self, *entries: Entry) -> None:
        """Commit entries together; raises, and nothing is written, if the disk does not take them."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.submit([row_of(entry) for entry in entries], lambda error: settle(done, error))
        await done

    def submit(self, rows: Sequence[Row], then: Then) -> None:
        """Commit rows with all that waits; `then` is called in the loop. Raises where nothing more can wait."""
        if self._closing:
            raise Refused("unavailable", "the service is shutting down", headers={"Retry-After": "5"})
        if len(self._waiting) >= self.backlog:
            raise Refused("unavailable", "too much waits to be written", headers={"Retry-After": "1"})
        self._waiting.append((rows, then))
        if not self._syncing and not self._held:
            self._commit()

    def close(self) -> None:
        """Write what waits, then let go of the file."""
        self._over.set()
        if self._folder is not None:
            self._folder.join()
        if self._thread is not None:
            self._orders.put(False)
            self._thread.join()
        self._held, group = False, self._syncing
        self._syncing = []
        _tell(group, None if self.durability == "process" else self._sync())
        while self._waiting:
            self._commit(aside=False)
        self._closing = True
        self.reader.close()
        self.journal.close()
        os.close(self._log)

    def _commit(self, *, aside: bool = True) -> None:
        """Everything that waits, as one transaction; acknowledged now, or when the disk has it."""
        group, self._waiting = self._waiting, []
        rows = [row for rows, _ in group for row in rows]
        self._grown += sum(len(row[5]) + len(row[6] or b"") for row in rows) + PAGE
        try:
            self.journal.put_rows(rows)
        except (JournalError, sqlite3.Error, OSError) as why:
            _tell(group, _refusal(why))
            return
        if self.durability == "process":
            _tell(group, None)
        elif aside:
            self._syncing = group
            self._orders.put(True)
        else:
            _tell(group, self._sync())

    def _sync(self) -> Exception | None:
        try:
            os.fdatasync(self._log)
        except OSError as why:
            return _refusal(why)
        return None

    def _sync_for_ever(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._orders.get():
            loop.call_soon_threadsafe(self._synced, self._sync())

    def _synced(self, error: Exception | None) -> None:
        group, self._syncing = self._syncing, []
        if self._waiting and not self._held:
            self._commit()  # the disk is kept busy while answers go out
        _tell(group, error)

    def _fold_for_ever(self) -> None:
        """Fold the log into the file now and then; where it grows all the same, with the writer waiting."""
        folder: Journal | None = None
        while not self._over.wait(FOLD_EVERY):
            if self._grown < FOLD_BYTES:
                continue
            folder = folder or Journal(self.journal.path, durability="process")
            try:
                grown, (pages, _) = self._grown, folder.checkpoint()
                if pages > HOLD_BYTES // PAGE:
                    self._hold(folder)
                self._grown -= grown
            except (JournalError, sqlite3.Error):
                time.sleep(FOLD_EVERY)  # busy, or the disk is full: the log is whole, and it is tried again
        if folder is not None:
            folder.close()

    def _hold(self, folder: Journal) -> None:
        """All of the log is folded, and begins anew with the next commit."""
        assert self._loop is not None
        held = threading.Event()

        def hold() -> None:
            self._held = True
            held.set()

        def release() -> None:
            self._held = False
            if self._waiting and not self._syncing:
                self._commit()

        self._loop.call_soon_threadsafe(hold)
        try:
            while not held.wait(0.1):
                if self._over.is_set():
                    return
            folder.checkpoint()
        finally:
            self._loop.call_soon_threadsafe(release)


def settle(done: asyncio.Future[Any], result: Any) -> None:
    """Finish a future with a result, or with an exception if it is one; not if nobody waits for it any more."""
    if done.cancelled():
        return
    if isinstance(result, Exception):
        done.set_exception(result)
    else:
        done.set_result(result)


def _tell(group: Group, error: Exception | None) -> None:
    for _, then in group:
        then(error)


def _refusal(why: Exception) -> Refused:
    if "full" in str(why) or getattr(why, "errno", 0) == 28:
        return Refused(
            "full", "the disk is full: nothing was stored; make room and try again", headers={"Retry-After": "30"}
        )
    return Refused("unavailable", f"nothing was stored: {why}", headers={"Retry-After": "5"})
