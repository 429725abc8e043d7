"""Back up, restore and delete the data of a service."""

from __future__ import annotations

import re
import shutil
import sqlite3
import time
from pathlib import Path
from typing import NamedTuple

from surefoot.data.journal import Journal
from surefoot.errors import JournalError, RunError
from surefoot.learn.checkpoint.atomic_files import RunLock

FILE = "decisions.sqlite"
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}


class Purged(NamedTuple):
    """How many entries were deleted."""

    decisions: int
    rewards: int


def backup(directory: Path, target: Path) -> int:
    """Copy a data directory, also while it is in use; return the number of decisions in the copy."""
    _require(directory)
    _require_new(target)
    target.mkdir(parents=True)
    # SQLite's backup: a copy of the file alone would miss commits that are still in the write-ahead log. The journal before
    # the policies: a version is saved before its entry, so every version that the copied journal names is copied too.
    with sqlite3.connect(directory / FILE) as source, sqlite3.connect(target / FILE) as copy:
        source.backup(copy)
    copy.close()
    source.close()
    if (directory / "policies").is_dir():
        shutil.copytree(directory / "policies", target / "policies", symlinks=True)
    return _checked(target)


def restore(source: Path, directory: Path) -> int:
    """Check a copy and restore it to a new data directory; return the number of its decisions."""
    _require(source)
    _checked(source)
    _require_new(directory)
    # `live` must stay a link. A plain copy of a data directory may contain the lock of another process.
    shutil.copytree(source, directory, symlinks=True, ignore=shutil.ignore_patterns(".lock"))
    return _checked(directory)


def purge(directory: Path, *, older_than: float | None = None, subject: str | None = None) -> Purged:
    """Delete decisions and their rewards permanently: those older than a number of seconds, or all of one subject."""
    _require(directory)
    with RunLock(directory), Journal(directory / FILE) as journal:
        before = None if older_than is None else time.time() - older_than
        if subject is not None:
            doomed = [e for e in journal.scan("decision") if e.body.get("subject") == subject]
        else:
            doomed = [e for e in journal.scan("decision") if before is not None and e.t < before]
        names = {entry.id for entry in doomed}
        rewards = [e.seq for e in journal.scan("reward") if e.id.rpartition("#")[0] in names]
        # Decisions last: rewards are found by their decision, so a purge that crashed can be repeated and misses none.
        journal.delete("reward", rewards)
        journal.delete("activated", [e.seq for e in journal.scan("activated") if e.id in names])
        journal.delete("decision", [entry.seq for entry in doomed])
        journal.compact()  # otherwise deleted data would stay readable in free pages
    return Purged(decisions=len(doomed), rewards=len(rewards))


def seconds_of(text: str) -> float:
    """Return `30d`, `12h`, `90m`, `4w` or `600s` in seconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", text)
    if match is None:
        raise RunError(f"{text!r} is not a duration; write a number and one of s, m, h, d, w, for example 30d")
    return float(match[1]) * _UNITS[match[2]]


def _require(directory: Path) -> None:
    if not (directory / FILE).is_file():
        raise RunError(f"{directory} has no {FILE}; pass the folder of `surefoot serve --data-dir`")


def _require_new(directory: Path) -> None:
    if directory.exists() and (not directory.is_dir() or any(True for _ in directory.iterdir())):
        raise RunError(f"{directory} already exists; pass a new folder, nothing is overwritten")


def _checked(directory: Path) -> int:
    """Return the number of decisions in a store, after an integrity check."""
    db = sqlite3.connect(directory / FILE)
    try:
        (verdict,) = db.execute("PRAGMA integrity_check").fetchone()
        if verdict != "ok":
            raise JournalError(f"{directory / FILE} is damaged: {verdict}")
        return int(db.execute("SELECT count(*) FROM entries WHERE kind = 'decision'").fetchone()[0])
    except sqlite3.DatabaseError as why:
        raise JournalError(f"{directory / FILE} is damaged: {why}") from why
    finally:
        db.close()
