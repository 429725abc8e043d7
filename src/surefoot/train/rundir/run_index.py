"""All runs of a directory as rows, fast: the rows of runs that do not change are kept in a file that can be deleted."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec

from surefoot.errors import ConfigError
from surefoot.learn.checkpoint.atomic_files import REAL_FS, replace_file
from surefoot.train.rundir.run_summary import is_locked, row_of
from surefoot.train.rundir.rundir import RunDir

INDEX = ".runs-index.json"
COLUMNS = ("run", "env", "state", "env_steps", "score", "return", "finding", "created")
# Below this many runs a listing is fast without a file.
_WORTHWHILE = 50
_ENDLESS = ("running", "stopped without an end")

Stamp = tuple[int, int, int]
"""Times of last change of the header and of the record, and the record's size."""


class RunIndex:
    """Rows of the runs under one directory, by name; a row is computed again when its files changed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._known: dict[str, tuple[Stamp, dict[str, Any]]] = {}
        with suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):  # without it everything is computed again
            self._known = msgspec.json.decode((root / INDEX).read_bytes(), type=dict[str, tuple[Stamp, dict[str, Any]]])

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per run, oldest first."""
        rows: list[dict[str, Any]] = []
        current: dict[str, tuple[Stamp, dict[str, Any]]] = {}
        changed = False
        for name, stamp in _stamps(self.root):
            known = self._known.get(name)
            if known is None or known[0] != stamp or not known[1].keys() >= set(COLUMNS):
                row = row_of(RunDir(self.root / name)) | {"created": stamp[0] / 1e9}
                current[name], changed = (stamp, row), True
            else:
                row = known[1]
                if row["state"] in _ENDLESS:  # whether a process writes it is not a matter of its files
                    row["state"] = _ENDLESS[0 if is_locked(RunDir(self.root / name)) else 1]
                current[name] = known
            rows.append(row)
        if len(current) >= _WORTHWHILE and (changed or len(current) != len(self._known)):
            with suppress(OSError):  # a directory that cannot be written is listed all the same
                replace_file(REAL_FS, self.root / INDEX, msgspec.json.encode(current))
        self._known = current
        return sorted(rows, key=lambda row: row["created"])


def _stamps(root: Path) -> list[tuple[str, Stamp]]:
    """Return the names of the runs under `root`, each with the stamp of its files; strings, because paths are slow."""
    stamps: list[tuple[str, Stamp]] = []
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(root) as entries:
        for entry in entries:
            try:
                header = os.stat(f"{entry.path}/run.json")
            except OSError:
                continue
            try:
                record = os.stat(f"{entry.path}/telemetry.ndjson")
                stamps.append((entry.name, (header.st_mtime_ns, record.st_mtime_ns, record.st_size)))
            except OSError:
                stamps.append((entry.name, (header.st_mtime_ns, 0, 0)))
    return stamps


def select(rows: list[dict[str, Any]], words: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows that all words admit.

    A word is a part or pattern of a run's name or environment; KEY=VALUE compares a column; sort=COLUMN sorts, in
    descending order with a minus sign before the column; limit=N keeps the last N.
    """
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            rows = [row for row in rows if _fits(row["run"], word) or _fits(row["env"], word)]
        elif key == "sort":
            rows = _sorted(rows, value)
        elif key == "limit":
            if not value.isdecimal() or int(value) < 1:
                raise ConfigError(f"limit is {value!r}; it must be a whole number from 1 on")
            rows = rows[-int(value) :]
        elif key in COLUMNS:
            rows = [row for row in rows if _fits("" if row[key] is None else str(row[key]), value)]
        else:
            raise ConfigError(
                f"runs have no column {key!r}; columns are {', '.join(COLUMNS)}, and sort= and limit= select"
            )
    return rows


def _fits(text: str, pattern: str) -> bool:
    text, pattern = text.casefold(), pattern.casefold()
    return fnmatchcase(text, pattern) if any(mark in pattern for mark in "*?[") else pattern in text


def _sorted(rows: list[dict[str, Any]], column: str) -> list[dict[str, Any]]:
    name = column.removeprefix("-")
    if name not in COLUMNS:
        raise ConfigError(
            f"sort is {column!r}; it must be one of {', '.join(COLUMNS)}, or one of them after a minus sign"
        )
    known = [row for row in rows if row[name] is not None]
    # Runs that do not have the number come first: the end of a list is what a terminal shows.
    return [row for row in rows if row[name] is None] + sorted(
        known, key=lambda row: row[name], reverse=column.startswith("-")
    )
