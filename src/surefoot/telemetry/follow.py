"""A record followed while it is written: half lines wait, rotated and cut files are noticed, nothing comes twice."""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from types import TracebackType
from typing import Self

from surefoot.telemetry.files import rotation
from surefoot.telemetry.reader import LineProblem, read_line
from surefoot.telemetry.schema import Record, UpdateRecord

_CHUNK = 1 << 22
_MARK = 64


class Follow:
    """What was written since the last look. The file may come later, be rotated, be cut, or be replaced.

    That the file is still the one that was read is known by the bytes before the place reached; if they changed,
    everything is read again and what was told before is left out by its `seq`.
    """

    def __init__(self, path: Path | str) -> None:
        self._live = rotation.live_file(Path(path))
        self._given = Path(path)
        self._fd: int | None = None
        self._offset = 0
        self._mark = b""
        self._seq = 0
        self._number = 0
        self._seconds = 0.0
        self._parts: set[str] = set()
        self._begun = False

    def poll(self) -> list[Record | LineProblem]:
        """Records and problems since the last call; an empty list if there is nothing yet."""
        items: list[Record | LineProblem] = []
        if not self._begun:
            self._live = rotation.live_file(self._given)  # it may have been made a directory since
            if not self._live.exists():
                return items
            self._begun = True
        self._take_parts(items)
        if self._fd is not None and self._is_another():
            self._drain(items)  # the last lines of a file that was renamed
            self.close()
        if self._fd is None and not self._open():
            return items
        if not self._drain(items):
            self._offset, self._mark, self._number = 0, b"", 0
            self._take_parts(items)
            self._drain(items)
        return items

    def close(self) -> None:
        """Let go of the file."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def _open(self) -> bool:
        try:
            self._fd = os.open(self._live, os.O_RDONLY)
        except FileNotFoundError:
            return False
        self._offset, self._mark, self._number = 0, b"", 0
        return True

    def _is_another(self) -> bool:
        assert self._fd is not None
        try:
            there, here = os.stat(self._live), os.fstat(self._fd)
        except FileNotFoundError:
            return False  # between a rename and the new file
        return (there.st_ino, there.st_dev) != (here.st_ino, here.st_dev)

    def _take_parts(self, items: list[Record | LineProblem]) -> None:
        """Whatever went into compressed parts that were not there before."""
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

    def _drain(self, items: list[Record | LineProblem]) -> bool:
        """Take the whole lines that are there; False if the file is no longer the one that was read."""
        while True:
            chunk = self._after_mark()
            if chunk is None:
                return False
            whole = chunk.rfind(b"\n") + 1
            if not whole:
                return True
            for line in chunk[: whole - 1].split(b"\n"):
                self._number += 1
                self._take(self._live.name, self._number, line + b"\n", items)
            self._offset += whole
            self._mark = (self._mark + chunk[:whole])[-_MARK:]

    def _after_mark(self) -> bytes | None:
        """What follows the mark, read in one go with it: the file may be cut at any moment."""
        assert self._fd is not None
        mark, size = len(self._mark), _CHUNK
        while True:
            chunk = os.pread(self._fd, mark + size, self._offset - mark)
            if not chunk.startswith(self._mark):
                return None
            if b"\n" in chunk[mark:] or len(chunk) < mark + size:
                return chunk[mark:]
            size *= 2  # a line longer than a chunk

    def _take(self, name: str, number: int, line: bytes, items: list[Record | LineProblem]) -> None:
        if not line.strip():
            return
        item = read_line(name, number, line, before=self._seconds)
        if not isinstance(item, LineProblem) and item.run:  # an old log's lines have no run, and numbers instead of seq
            if item.seq <= self._seq:
                return
            self._seq = item.seq
        elif isinstance(item, UpdateRecord):
            self._seconds = item.t
        items.append(item)
