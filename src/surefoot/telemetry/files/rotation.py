"""The files of a record: one live file, the compressed parts it was rotated into, and the lock of its writer."""

from __future__ import annotations

import fcntl
import gzip
import os
import re
import shutil
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

import msgspec

from surefoot.errors import TelemetryError
from surefoot.telemetry.schema import FILE_NAME, VERSION

# Bytes read per step from the end of a file; a line is a few hundred bytes, so one step is nearly always enough.
_CHUNK = 1 << 16


class Position(msgspec.Struct, kw_only=True):
    """The fields of a line that give its position; also decodes kinds of later versions."""

    seq: int
    v: str
    run: str = ""
    kind: str = ""
    env_steps: int = 0
    updates: int = 0


_positions = msgspec.json.Decoder(Position)


def position(line: bytes) -> Position | None:
    """Return the position of a line; None if it is not a record."""
    try:
        return _positions.decode(line)
    except msgspec.DecodeError:
        return None


def live_file(path: Path) -> Path:
    """Return the file that is being written: `path` itself, or the record in the run directory `path`."""
    return path / FILE_NAME if path.is_dir() else path


def rotated_parts(live: Path) -> list[Path]:
    """Return the compressed parts that were rotated out of `live`, oldest first."""
    if not live.parent.is_dir():
        return []
    pattern = re.compile(re.escape(live.stem) + r"\.(\d{4,})" + re.escape(live.suffix) + r"\.gz")
    numbered = [(int(m[1]), p) for p in live.parent.iterdir() if (m := pattern.fullmatch(p.name))]
    return [p for _, p in sorted(numbered)]


def open_part(part: Path) -> BinaryIO:
    """Open a part for reading, decompressed if it is compressed."""
    return cast(BinaryIO, gzip.open(part, "rb")) if part.suffix == ".gz" else part.open("rb")


def refuse_later_version(part: Path) -> None:
    """Raise `TelemetryError` if the file begins with a record of a later major version: none of its lines can be read."""
    try:
        with open_part(part) as file:
            first = position(file.readline(_CHUNK))
    except (OSError, EOFError, zlib.error):
        return  # the reader reports it with its line
    known, claimed = VERSION.partition(".")[0], first.v.partition(".")[0] if first else ""
    if claimed.isdigit() and int(claimed) > int(known):
        raise TelemetryError(
            f"{part} has telemetry version {first.v if first else ''}; this version of surefoot reads {known}.x and 1.x: "
            "read it with a newer one (`pip install -U surefoot`)"
        )


def open_locked(live: Path) -> int:
    """Return a descriptor that appends to `live`, created if missing. Raise if another process has one."""
    fd = os.open(live, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    # A child that was forked while its parent held the lock holds it until its own exec: retry for 0.3 s.
    for _ in range(6):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return fd
        except BlockingIOError:
            time.sleep(0.05)
    os.close(fd)
    raise TelemetryError(f"{live} is being written by another process; a run has one writer: stop that one first")


def is_being_written(path: Path) -> bool:
    """Return whether a recorder holds the record of `path` (a run directory or its live file)."""
    try:
        fd = os.open(live_file(path), os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(fd)


def rotate(fd: int, live: Path) -> Path:
    """Compress `live` into a new part and empty it. The descriptor and its lock stay valid.

    A crash before the truncation leaves the same lines in both files; `settle` and the readers handle that.
    """
    parts = rotated_parts(live)
    number = int(parts[-1].name.removesuffix(live.suffix + ".gz").rpartition(".")[2]) + 1 if parts else 1
    part = live.with_name(f"{live.stem}.{number:04d}{live.suffix}.gz")
    draft = part.with_name(part.name + ".draft")
    with draft.open("wb") as raw:
        # Level 3: rotation pauses the run, so speed counts more than the last percent of size. No name, no time: the
        # same lines give the same bytes.
        with live.open("rb") as plain, gzip.GzipFile("", "wb", compresslevel=3, fileobj=raw, mtime=0) as packed:
            shutil.copyfileobj(plain, packed, 1 << 20)
        raw.flush()
        os.fsync(raw.fileno())
    draft.replace(part)
    sync_folder(part.parent)
    os.ftruncate(fd, 0)
    return part


def sync_folder(folder: Path) -> None:
    """Make renames and removals in `folder` survive a power failure."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def settle(fd: int, live: Path) -> tuple[Position | None, int]:
    """Cut off a torn last line. Return the position of the last record and the number of bytes cut off."""
    torn = _cut_torn_tail(fd)
    parts = rotated_parts(live)
    old = last_position(parts[-1]) if parts else None
    new = last_position(live)
    # The process ended between writing a part and emptying the live file.
    if old and new and new.seq <= old.seq:
        os.ftruncate(fd, 0)
        new = None
    if new is None and os.fstat(fd).st_size:
        raise TelemetryError(
            f"{live} has lines but none is a record of version {VERSION}; move it away to start a new one"
        )
    last = new or old
    if last and last.v.partition(".")[0] != VERSION.partition(".")[0]:
        raise TelemetryError(f"{live} has version {last.v} and this is {VERSION}; continue in a new run directory")
    return last, torn


def _cut_torn_tail(fd: int) -> int:
    size = os.fstat(fd).st_size
    end, tail = size, b""
    while end > 0 and b"\n" not in tail:
        start = max(0, end - _CHUNK)
        tail = os.pread(fd, end - start, start)
        end = start
    end += tail.rfind(b"\n") + 1
    if end < size:
        os.ftruncate(fd, end)
    return size - end


def last_position(part: Path) -> Position | None:
    """Return the position of the last valid line of a file; None if it has none."""
    return next(filter(None, map(position, _lines_from_end(part))), None)


def _lines_from_end(part: Path) -> Iterator[bytes]:
    """Yield complete lines, last first. A compressed part can only be read from its beginning."""
    with open_part(part) as file:
        if part.suffix == ".gz":
            yield from reversed(file.readlines())
            return
        end, tail = file.seek(0, os.SEEK_END), b""
        while end > 0:
            start = max(0, end - _CHUNK)
            file.seek(start)
            tail, *lines = (file.read(end - start) + tail).split(b"\n")
            yield from reversed(lines)
            end = start
        yield tail
