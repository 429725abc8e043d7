"""Where a record lies on disk: one live file, the compressed parts it was rotated into, and the lock of its writer."""

from __future__ import annotations

import fcntl
import gzip
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

import msgspec

from surefoot.errors import TelemetryError
from surefoot.telemetry.schema import FILE_NAME, VERSION


class Position(msgspec.Struct, kw_only=True):
    """Just enough of a line to know where it stands; reads kinds of later versions too."""

    seq: int
    v: str
    run: str = ""
    kind: str = ""
    env_steps: int = 0
    updates: int = 0


_positions = msgspec.json.Decoder(Position)


def position(line: bytes) -> Position | None:
    """Where a line stands, or None if it is no record."""
    try:
        return _positions.decode(line)
    except msgspec.DecodeError:
        return None


def live_file(path: Path) -> Path:
    """The file that is being written: `path` itself, or the one in the run directory `path`."""
    return path / FILE_NAME if path.is_dir() else path


def rotated_parts(live: Path) -> list[Path]:
    """The compressed parts that came before `live`, oldest first."""
    if not live.parent.is_dir():
        return []
    pattern = re.compile(re.escape(live.stem) + r"\.(\d{4,})" + re.escape(live.suffix) + r"\.gz")
    numbered = [(int(m[1]), p) for p in live.parent.iterdir() if (m := pattern.fullmatch(p.name))]
    return [p for _, p in sorted(numbered)]


def open_part(part: Path) -> BinaryIO:
    """A part's plain bytes, decompressed where it is compressed."""
    return cast(BinaryIO, gzip.open(part, "rb")) if part.suffix == ".gz" else part.open("rb")


def open_locked(live: Path) -> int:
    """A descriptor that appends to `live`, created if missing; only one process may hold one.

    A child that was forked while its parent held the lock keeps it a moment longer, hence the patience.
    """
    fd = os.open(live, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    for _ in range(6):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return fd
        except BlockingIOError:
            time.sleep(0.05)
    os.close(fd)
    raise TelemetryError(f"{live} is being written by another process; a run has one writer: stop that one first")


def is_being_written(path: Path) -> bool:
    """True while a recorder holds the record of `path` (a run directory or its live file)."""
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
    """Move what `live` holds into a new compressed part and empty it. The descriptor and its lock stay good.

    A crash before the emptying leaves the same lines in both files; `settle` and the readers know that.
    """
    parts = rotated_parts(live)
    number = int(parts[-1].name.removesuffix(live.suffix + ".gz").rpartition(".")[2]) + 1 if parts else 1
    part = live.with_name(f"{live.stem}.{number:04d}{live.suffix}.gz")
    draft = part.with_name(part.name + ".draft")
    with draft.open("wb") as raw:
        with live.open("rb") as plain, gzip.GzipFile("", "wb", compresslevel=3, fileobj=raw, mtime=0) as packed:
            shutil.copyfileobj(plain, packed, 1 << 20)
        raw.flush()
        os.fsync(raw.fileno())
    draft.replace(part)
    sync_folder(part.parent)
    os.ftruncate(fd, 0)
    return part


def sync_folder(folder: Path) -> None:
    """Make renames and removals in `folder` survive a power cut."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def settle(fd: int, live: Path) -> tuple[Position | None, int]:
    """Where the record stands, and how many bytes of a torn last line were cut off to make it end in a whole one."""
    torn = _cut_torn_tail(fd)
    parts = rotated_parts(live)
    old = last_position(parts[-1]) if parts else None
    new = last_position(live)
    if old and new and new.seq <= old.seq:  # the process ended between writing a part and emptying the live file
        os.ftruncate(fd, 0)
        new = None
    if new is None and os.fstat(fd).st_size:
        raise TelemetryError(
            f"{live} has lines but none is a record of version {VERSION}; move it away to start a new one"
        )
    last = new or old
    if last and last.v.partition(".")[0] != VERSION.partition(".")[0]:
        raise TelemetryError(f"{live} is of version {last.v} and this is {VERSION}; go on in a new run directory")
    return last, torn


def _cut_torn_tail(fd: int) -> int:
    size = os.fstat(fd).st_size
    whole, tail = size, b""
    while whole > 0 and b"\n" not in tail:
        start = max(0, whole - (1 << 16))
        tail = os.pread(fd, whole - start, start)
        whole = start
    whole += tail.rfind(b"\n") + 1
    if whole < size:
        os.ftruncate(fd, whole)
    return size - whole


def last_position(part: Path) -> Position | None:
    """Where the last good line of a file stands; None if it has none."""
    return next(filter(None, map(position, _lines_from_end(part))), None)


def _lines_from_end(part: Path) -> Iterator[bytes]:
    """Whole lines, last first. A compressed part can only be read from its beginning, and is."""
    with open_part(part) as file:
        if part.suffix == ".gz":
            yield from reversed(file.readlines())
            return
        end, rest = file.seek(0, os.SEEK_END), b""
        while end > 0:
            start = max(0, end - (1 << 16))
            file.seek(start)
            first, *lines = (file.read(end - start) + rest).split(b"\n")
            yield from reversed(lines)
            end, rest = start, first
        yield rest
