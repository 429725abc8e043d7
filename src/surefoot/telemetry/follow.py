"""Following a record while it is written: partial lines wait, rotation and truncation are noticed, no line comes twice."""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import Self

from surefoot.telemetry.files import rotation
from surefoot.telemetry.reader import LineProblem, read_line
from surefoot.telemetry.schema import Record, UpdateRecord

# Bytes per read: large enough for one call per poll, small enough not to matter in memory.
_CHUNK = 1 << 22
# Bytes before the current position that are compared at each read: more make it less likely that a rewritten file has the
# same bytes there.
_MARK = 64


class Follow:
    """Return what was written since the last poll. The file may not exist yet, and be rotated, truncated or replaced.

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

    def poll(self) -> list[Record | LineProblem]:
        """Return records and problems since the last call; an empty list if there are none."""
        items: list[Record | LineProblem] = []
        if not self._begun:
            self._live = rotation.live_file(self._path)  # the path may have become a directory since
            if not self._live.exists():
                return items
            self._begun = True
        self._take_parts(items)
        if self._fd is not None and self._replaced(self._fd):
            self._drain(self._fd, items)  # the last lines of a file that was renamed
            self.close()
        if self._fd is None:
            try:
                self._fd = os.open(self._live, os.O_RDONLY)
            except FileNotFoundError:
                return items
            self._offset, self._mark, self._number = 0, b"", 0
        if not self._drain(self._fd, items):
            self._offset, self._mark, self._number = 0, b"", 0
            self._take_parts(items)
            self._drain(self._fd, items)
        return items

    def close(self) -> None:
        """Close the file."""
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

    def _take_parts(self, items: list[Record | LineProblem]) -> None:
        """Read the compressed parts that are new."""
        for part in rotation.rotated_parts(self._live):
            if part.name in self._parts:
                continue
            self._parts.add(part.name)
            try:
                with rotation.open_part(part) as file:
                    for number, line in enumerate(file, 1):
                        self._take(part.name, number, line, items)
            except (OSError, EOFError, zlib.error) as error:
                items.append(LineProblem(part.name, 1, f"the file cannot be read: {error}"))

    def _drain(self, fd: int, items: list[Record | LineProblem]) -> bool:
        """Read all complete lines; return False if the file is no longer the one that was read."""
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
            for line in chunk[: end - 1].split(b"\n"):
                self._number += 1
                self._take(self._live.name, self._number, line + b"\n", items)
            self._offset += end
            self._mark = (self._mark + chunk[:end])[-_MARK:]

    def _take(self, name: str, number: int, line: bytes, items: list[Record | LineProblem]) -> None:
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
        items.append(item)
