"""A table of JSON entries in one SQLite file: acknowledged entries are on disk, even if the process is killed.

Concurrent writers share a commit: the first one writes for all that wait, so that one fsync serves them all.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import msgspec
import numpy as np

from surefoot.errors import JournalError

FORMAT = 1

Durability = Literal["disk", "process"]
"""disk: acknowledged entries survive a power cut. process: they survive kill -9, and commits cost far less."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    tag TEXT NOT NULL DEFAULT '',
    number REAL,
    t REAL NOT NULL,
    body BLOB NOT NULL,
    raw BLOB,
    UNIQUE (kind, id)
);
CREATE INDEX IF NOT EXISTS by_kind ON entries (kind, seq);
CREATE INDEX IF NOT EXISTS by_tag ON entries (kind, tag, number);
"""

_PUT = """
INSERT INTO entries (kind, id, tag, number, t, body, raw) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (kind, id) DO UPDATE SET tag = excluded.tag, number = excluded.number, body = excluded.body, raw = excluded.raw
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One row. A second entry of the same kind and id replaces the body and keeps its sequence number."""

    kind: str
    id: str
    body: Any
    """Any JSON value."""
    tag: str = ""
    """A label to group by."""
    number: float | None = None
    """A number to average."""
    raw: bytes | None = None
    """Binary numbers; as JSON they would be twice as long."""
    seq: int = 0
    t: float = 0.0


Row = tuple[str, str, str, float | None, float, bytes, bytes | None]
"""An entry for SQL: kind, id, tag, number, t, body as JSON, raw."""


def row_of(entry: Entry) -> Row:
    e = entry
    return e.kind, e.id, e.tag, e.number, e.t or time.time(), msgspec.json.encode(e.body), e.raw


@dataclass(slots=True)
class _Put:
    """Rows that wait to be written, and the result."""

    rows: list[tuple[Any, ...]]
    done: bool = False
    error: BaseException | None = None


class Journal:
    """An open journal file. Safe for many threads and several processes; closing twice does nothing."""

    def __init__(
        self, path: str | Path, *, timeout: float = 30.0, durability: Durability = "disk", page_size: int = 4096
    ) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._turn = threading.Condition()
        self._waiting: list[_Put] = []
        self._writing = False
        self._lock = threading.RLock()
        try:
            self._db = sqlite3.connect(self.path, timeout=timeout, isolation_level=None, check_same_thread=False)
            self._db.execute(f"PRAGMA page_size={page_size}")  # of a new file; an existing one keeps its size
            self._db.execute("PRAGMA journal_mode=WAL")
            # FULL: with WAL, NORMAL would lose the last commits to a power cut.
            self._db.execute(f"PRAGMA synchronous={'FULL' if durability == 'disk' else 'NORMAL'}")
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            if version == 0:
                self._db.execute(f"PRAGMA user_version={FORMAT}")
            elif version != FORMAT:
                raise JournalError(f"{self.path} has format {version}; this version of surefoot reads format {FORMAT}")
            self._db.executescript(_SCHEMA)
        except sqlite3.DatabaseError as error:
            raise JournalError(f"{self.path} cannot be used as a journal: {error}") from error
        self.closed = False

    def put(self, *entries: Entry) -> None:
        """Write entries, all or none; they are on disk when this returns."""
        put = _Put([row_of(entry) for entry in entries])
        batch: list[_Put] = []
        # Group commit: the first thread that finds no writer becomes it and takes all waiting rows.
        with self._turn:
            self._require_open()
            self._waiting.append(put)
            while self._writing and not put.done:
                self._turn.wait()
            if not put.done:
                batch, self._waiting, self._writing = self._waiting, [], True
        if batch:
            self._write_for(batch)
        if put.error is not None:
            raise JournalError(f"nothing was written to {self.path}: {put.error}") from put.error

    def put_rows(self, rows: Sequence[Row]) -> None:
        """Commit rows now, all or none, without group commit: for the only writer of a file."""
        self._require_open()
        self._commit(_PUT, list(rows))

    def disable_auto_checkpoint(self) -> None:
        """Stop commits from merging the write-ahead log into the file; only `checkpoint` does it from now on."""
        with self._lock:
            self._db.execute("PRAGMA wal_autocheckpoint=0")

    def checkpoint(self) -> tuple[int, int]:
        """Merge the write-ahead log into the file without blocking others; return (pages of the log, pages written)."""
        with self._lock:
            self._require_open()
            _, pages, done = self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            return int(pages), int(done)

    def get(self, kind: str, id: str) -> Entry | None:
        """Return the entry of that id, or None."""
        return next(self._rows("kind = ? AND id = ?", (kind, id), ""), None)

    def has(self, kind: str, id: str) -> bool:
        """Return whether there is such an entry, without reading its body."""
        return bool(self._query("SELECT 1 FROM entries WHERE kind = ? AND id = ?", (kind, id)))

    def latest(self, kind: str, count: int, *, tag: str | None = None, before: int | None = None) -> list[Entry]:
        """Return the last `count` entries of a kind (and of a tag, and with a seq below `before`), oldest first."""
        wanted = {"kind = ?": kind, "tag = ?": tag, "seq < ?": before}
        where = " AND ".join(term for term, value in wanted.items() if value is not None)
        values = tuple(value for value in wanted.values() if value is not None)
        return list(self._rows(where, values, f"ORDER BY seq DESC LIMIT {int(count)}"))[::-1]

    def scan(self, kind: str, after: int = 0, limit: int | None = None) -> Iterator[Entry]:
        """Return entries of a kind with seq above `after`, in the order in which they were first written."""
        return self._rows("kind = ? AND seq > ?", (kind, after), f"ORDER BY seq LIMIT {-1 if limit is None else limit}")

    def pick(self, kind: str, seqs: Sequence[int]) -> list[Entry]:
        marks = ",".join("?" * len(seqs))
        return list(self._rows(f"kind = ? AND seq IN ({marks})", (kind, *seqs), "ORDER BY seq"))

    def count(self, kind: str) -> int:
        return int(self._query("SELECT count(*) FROM entries WHERE kind = ?", (kind,))[0][0])

    def tallies(self, kind: str, least: float = 0.0) -> dict[str, tuple[int, float, int]]:
        """Return {tag: (entries, mean number, entries whose number is at least `least`)}."""
        rows = self._query(
            "SELECT tag, count(*), avg(number), sum(number >= ?) FROM entries WHERE kind = ? GROUP BY tag ORDER BY tag",
            (least, kind),
        )
        return {t: (int(n), float("nan") if mean is None else float(mean), int(good or 0)) for t, n, mean, good in rows}

    def below(self, kind: str, number: float, before: int) -> list[int]:
        """Return the sequence numbers below `before` of entries whose number is smaller than `number`."""
        sql = "SELECT seq FROM entries WHERE kind = ? AND number < ? AND seq < ? ORDER BY seq"
        return [int(row[0]) for row in self._query(sql, (kind, number, before))]

    def sample(self, kind: str, count: int, generator: np.random.Generator) -> list[Entry]:
        """Return random entries of a kind, uniformly if no entries were removed."""
        low, high = self.seq_range(kind)
        if self.count(kind) <= count:
            return self.latest(kind, count)
        # Rejection sampling by seq: ORDER BY random() would read the whole table.
        drawn: dict[int, Entry] = {}
        while len(drawn) < count:
            seqs = generator.integers(low, high + 1, size=2 * count)
            drawn |= {entry.seq: entry for entry in self.pick(kind, [int(s) for s in seqs])}
        return list(drawn.values())[:count]

    def seq_range(self, kind: str) -> tuple[int, int]:
        """Return lowest and highest seq of a kind; (0, 0) if there is none."""
        low, high = self._query("SELECT min(seq), max(seq) FROM entries WHERE kind = ?", (kind,))[0]
        return int(low or 0), int(high or 0)

    def delete(self, kind: str, seqs: Iterable[int]) -> int:
        """Delete entries; return how many existed."""
        return self._commit("DELETE FROM entries WHERE kind = ? AND seq = ?", [(kind, seq) for seq in seqs])

    def delete_tagged(self, tag: str, count: int) -> int:
        """Delete at most `count` entries of a tag, of any kind; return how many were deleted."""
        rows = self._query("SELECT seq FROM entries WHERE tag = ? LIMIT ?", (tag, count))
        return self._commit("DELETE FROM entries WHERE seq = ?", rows)

    def keep_latest(self, kind: str, count: int) -> int:
        """Delete all but the last `count` of a kind; return how many were deleted."""
        latest = "SELECT seq FROM entries WHERE kind = ? ORDER BY seq DESC LIMIT 1 OFFSET ?"
        return self._commit(f"DELETE FROM entries WHERE kind = ? AND seq <= ({latest})", [(kind, kind, count)])

    def clear(self, kind: str) -> None:
        with self._lock:
            self._require_open()
            self._db.execute("DELETE FROM entries WHERE kind = ?", (kind,))

    def compact(self) -> None:
        """Return the space of deleted entries to the file system."""
        with self._lock:
            self._require_open()
            self._db.execute("VACUUM")
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        with self._lock:
            if not self.closed:
                self.closed = True
                self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write_for(self, batch: list[_Put]) -> None:
        """Commit the waiting rows and wake their threads, also after an error: no thread may wait forever."""
        error: BaseException | None = JournalError("the commit was interrupted")
        try:
            self._commit(_PUT, [row for put in batch for row in put.rows])
            error = None
        except Exception as raised:
            error = raised
        finally:
            with self._turn:
                self._writing = False
                for put in batch:
                    put.done, put.error = True, error
                self._turn.notify_all()

    def _commit(self, sql: str, rows: list[tuple[Any, ...]]) -> int:
        """Execute for all rows or none; return the number of changed rows."""
        with self._lock:
            self._require_open()
            before = self._db.total_changes
            self._db.execute("BEGIN IMMEDIATE")
            try:
                self._db.executemany(sql, rows)
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:  # a full disk has ended it already
                    self._db.execute("ROLLBACK")
                raise
            return self._db.total_changes - before

    def _rows(self, where: str, values: tuple[Any, ...], order: str) -> Iterator[Entry]:
        rows = self._query(
            f"SELECT kind, id, tag, number, seq, t, body, raw FROM entries WHERE {where} {order}", values
        )
        for kind, id, tag, number, seq, t, body, raw in rows:
            content = msgspec.json.decode(body)
            yield Entry(kind=kind, id=id, tag=tag, number=number, seq=seq, t=t, body=content, raw=raw)

    def _query(self, sql: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        with self._lock:
            self._require_open()
            return self._db.execute(sql, values).fetchall()

    def _require_open(self) -> None:
        if getattr(self, "closed", False):
            raise JournalError(f"{self.path} is closed")
