"""Following a record while it is written: partial lines wait, rotation and truncation are noticed, no line comes twice."""

from __future__ import annotations

import os
import zlib
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Self

from surefoot.telemetry.files import rotation
from surefoot.telemetry.reader import LineProblem, read_line
from surefoot.telemetry.schema import Record, UpdateRecord

# Bytes per read: large enough for one call per poll, small enough not to matter in memory.
_CHUNK = 1 << 20
# Bytes before the current position that are compared at each read: more make it less likely that a rewritten file has the
# same bytes there.
_MARK = 64


class Follow:
    """Yield what was written since the last poll. The file may not exist yet, and be rotated, truncated or replaced.

    The bytes before the current position identify the file. If they changed, everything is read again, and records
    that were already returned are left out by their `seq`.
    """

    def __init__(self, path: Path | str) -> None:
        self._live = rotation.live_file(Path(path))
        self._path = Path(path)
        self._fd: int | None = None
        self._offset = 0
        self._mark = b""
        self._seq = 0
        self._number = 0
        self._seconds = 0.0
        self._parts: set[str] = set()
        self._begun = False

    def poll(self) -> Iterator[Record | LineProblem]:
        """Yield records and problems since the last call, chunk by chunk: memory does not grow with the file."""
        if not self._begun:
            self._live = rotation.live_file(self._path)  # the path may have become a directory since
            if not self._live.exists():
                return
            rotation.refuse_later_version(self._live)
            self._begun = True
        yield from self._new_parts()
        if self._live.suffix == ".gz":  # a single compressed file, which nobody appends to
            if self._live.name not in self._parts:
                yield from self._part(self._live)
            return
        if self._fd is not None and self._replaced(self._fd):
            yield from self._drain(self._fd)  # the last lines of a file that was renamed
            self.close()
        if self._fd is None:
            try:
                self._fd = os.open(self._live, os.O_RDONLY)
            except FileNotFoundError:
                return
            self._offset, self._mark, self._number = 0, b"", 0
        if not (yield from self._drain(self._fd)):
            self._offset, self._mark, self._number = 0, b"", 0
            yield from self._new_parts()
            yield from self._drain(self._fd)

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _replaced(self, fd: int) -> bool:
        try:
            current = os.stat(self._live)
        except FileNotFoundError:
            return False  # between a rename and the creation of the new file
        opened = os.fstat(fd)
        return (current.st_ino, current.st_dev) != (opened.st_ino, opened.st_dev)

    def _new_parts(self) -> Iterator[Record | LineProblem]:
        """Yield what the compressed parts have that are new."""
        for part in rotation.rotated_parts(self._live):
            if part.name not in self._parts:
                yield from self._part(part)

    def _part(self, part: Path) -> Iterator[Record | LineProblem]:
        self._parts.add(part.name)
        number = 0
        try:
            with rotation.open_part(part) as file:
                for number, line in enumerate(file, 1):
                    yield from self._read(part.name, number, line)
        except (OSError, EOFError, zlib.error) as error:
            yield LineProblem(part.name, number + 1, f"the file cannot be read further: {error}")

    def _drain(self, fd: int) -> Generator[Record | LineProblem, None, bool]:
        """Yield all complete lines; return False if the file is no longer the one that was read."""
        while True:
            mark, size = len(self._mark), _CHUNK
            while True:
                # Mark and new bytes in one read: the file may be truncated between two.
                chunk = os.pread(fd, mark + size, self._offset - mark)
                if not chunk.startswith(self._mark):
                    return False
                if b"\n" in chunk[mark:] or len(chunk) < mark + size:
                    break
                size *= 2  # a line longer than a chunk
            chunk = chunk[mark:]
            end = chunk.rfind(b"\n") + 1
            if not end:
                return True
            lines = chunk[: end - 1].split(b"\n")
            for number, line in enumerate(lines, self._number + 1):
                yield from self._read(self._live.name, number, line + b"\n")
            # Only now: a reader that stopped within the chunk gets the rest of it at its next poll.
            self._number += len(lines)
            self._offset += end
            self._mark = (self._mark + chunk[:end])[-_MARK:]

    def _read(self, name: str, number: int, line: bytes) -> Iterator[Record | LineProblem]:
        """Yield the record of a line, or its problem; nothing for an empty line, or one that was already returned."""
        if not line.strip():
            return
        item = read_line(name, number, line, before=self._seconds)
        # Lines of telemetry 1.x have no run, and line numbers for `seq`, which start again in every file.
        if not isinstance(item, LineProblem) and item.run:
            if item.seq <= self._seq:
                return
            self._seq = item.seq
        elif isinstance(item, UpdateRecord):
            self._seconds = item.t
        yield item
