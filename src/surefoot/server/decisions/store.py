"""The durable store of the service: one SQLite file. A response is sent after its content is on disk.

Concurrent requests share a commit. The event loop writes it to SQLite's write-ahead log, which takes microseconds; a
thread waits for the disk, which takes milliseconds. Requests that arrive meanwhile form the next commit.
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
"""Called once with None after the commit, or with the error."""
Group = list[tuple[Sequence[Row], Then]]

# Bytes per page of the file: an embedding of 1,536 numbers fits into one.
PAGE = 8192
# Seconds between looks at the size of the write-ahead log.
FOLD_EVERY = 0.25
# Size from which the log is checkpointed while the writer continues, and size from which the writer waits: the log must not
# outgrow the disk when commits come faster than checkpoints.
FOLD_BYTES, HOLD_BYTES = 8 << 20, 32 << 20


class Store:
    """The journal and its pending commits. `write` returns, and `submit` calls back, after the commit."""

    def __init__(self, path: Path, *, durability: Durability = "disk", backlog: int = 10_000) -> None:
        # Not FULL: it would block the event loop on the disk after each commit; here a thread waits for the disk.
        self.journal = Journal(path, durability="process", page_size=PAGE)
        self.journal.disable_auto_checkpoint()
        self.reader = Journal(path, durability="process")
        """Connection for long reads, so that they do not block the writer."""
        self.durability, self.backlog = durability, backlog
        # The log and not the database: until the next checkpoint, a commit is in the log only.
        self._log = os.open(f"{path}-wal", os.O_RDWR | os.O_CREAT, 0o644)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: Group = []
        self._syncing: Group = []
        self._held = False
        self._grown = 0
        """Bytes written since the last checkpoint of the log."""
        self._closing = False
        self._orders: queue.SimpleQueue[bool] = queue.SimpleQueue()
        """True: sync the log. False: end the thread."""
        self._thread: threading.Thread | None = None
        self._folder: threading.Thread | None = None
        self._over = threading.Event()

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the threads; callbacks run in this loop."""
        self._loop = loop
        self._thread = threading.Thread(target=self._sync_for_ever, args=(loop,), name="surefoot-disk", daemon=True)
        self._thread.start()
        self._folder = threading.Thread(target=self._fold_for_ever, name="surefoot-fold", daemon=True)
        self._folder.start()

    async def write(self, *entries: Entry) -> None:
        """Commit entries in one transaction; raise if nothing could be written."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.submit([row_of(entry) for entry in entries], lambda error: settle(done, error))
        await done

    def submit(self, rows: Sequence[Row], then: Then) -> None:
        """Add rows to the next commit; `then` is called in the loop. Raise if the backlog is full."""
        if self._closing:
            raise Refused("unavailable", "the service is shutting down", headers={"Retry-After": "5"})
        if len(self._waiting) >= self.backlog:
            raise Refused("unavailable", "too much waits to be written", headers={"Retry-After": "1"})
        self._waiting.append((rows, then))
        if not self._syncing and not self._held:
            self._commit()

    def close(self) -> None:
        """Write pending entries and close the file."""
        self._over.set()
        # First: this thread may pause the writer, which must not happen during the last commits.
        if self._folder is not None:
            self._folder.join()
        if self._thread is not None:
            self._orders.put(False)
            self._thread.join()
        # The callback of the last sync is queued in the loop and cannot run before this returns: acknowledge it here.
        self._held, group = False, self._syncing
        self._syncing = []
        _notify(group, None if self.durability == "process" else self._sync())
        while self._waiting:
            self._commit(aside=False)
        self._closing = True
        self.reader.close()
        self.journal.close()
        os.close(self._log)

    def _commit(self, *, aside: bool = True) -> None:
        """Commit everything pending in one transaction; acknowledge now, or after the disk sync."""
        group, self._waiting = self._waiting, []
        rows = [row for rows, _ in group for row in rows]
        # SQLite logs whole pages: without the extra one, commits of small rows would count as almost nothing.
        self._grown += sum(len(row[5]) + len(row[6] or b"") for row in rows) + PAGE
        try:
            self.journal.put_rows(rows)
        except (JournalError, sqlite3.Error, OSError) as why:
            _notify(group, _refusal(why))
            return
        if self.durability == "process":
            _notify(group, None)
        elif aside:
            self._syncing = group
            self._orders.put(True)
        else:
            _notify(group, self._sync())

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
            self._commit()  # the disk works on the next commit while responses are sent
        _notify(group, error)

    def _fold_for_ever(self) -> None:
        """Checkpoint the log periodically; if it still grows, with the writer paused."""
        folder: Journal | None = None
        while not self._over.wait(FOLD_EVERY):
            if self._grown < FOLD_BYTES:
                continue
            folder = folder or Journal(self.journal.path, durability="process")
            try:
                grown, (pages, _) = self._grown, folder.checkpoint()
                if pages > HOLD_BYTES // PAGE:
                    self._hold(folder)
                # Not set to 0: commits of the meantime are still in the log.
                self._grown -= grown
            except (JournalError, sqlite3.Error):
                time.sleep(FOLD_EVERY)  # busy, or the disk is full: the log is intact, retry later
        if folder is not None:
            folder.close()

    def _hold(self, folder: Journal) -> None:
        """Checkpoint the whole log with the writer paused, so that the next commit restarts it."""
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
    """Set the result or exception of a future, unless it was cancelled."""
    # The client disconnected while the commit ran; to set a result would raise InvalidStateError.
    if done.cancelled():
        return
    if isinstance(result, Exception):
        done.set_exception(result)
    else:
        done.set_result(result)


def _notify(group: Group, error: Exception | None) -> None:
    for _, then in group:
        then(error)


def _refusal(why: Exception) -> Refused:
    # SQLite reports only a text, "database or disk is full"; 28 is ENOSPC, from fdatasync.
    if "full" in str(why) or getattr(why, "errno", 0) == 28:
        return Refused(
            "full", "the disk is full: nothing was stored; make room and try again", headers={"Retry-After": "30"}
        )
    return Refused("unavailable", f"nothing was stored: {why}", headers={"Retry-After": "5"})
