"""A file that only ever grows by whole lines."""

from __future__ import annotations

import os
from pathlib import Path

from surefoot.errors import TelemetryError
from surefoot.telemetry import parts

_sync = getattr(os, "fdatasync", os.fsync)


class LineFile:
    """Appends lines, one `write` each, so that a killed process leaves no half of one; holds the writer's lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        fd = parts.open_locked(path)
        try:
            self.last, self.torn_bytes = parts.settle(fd, path)
        except BaseException:
            os.close(fd)
            raise
        self._fd: int | None = fd
        self.size = os.fstat(fd).st_size

    @property
    def closed(self) -> bool:
        """True once `close` was called."""
        return self._fd is None

    def append(self, line: bytes) -> None:
        """Write `line`, which ends in a newline; all of it, or (on a full disk) nothing and an error."""
        fd = self._descriptor()
        try:
            written = os.write(fd, line)
            if written < len(line):  # the disk is nearly full; the second write says so
                os.write(fd, line[written:])
        except OSError as error:
            os.ftruncate(fd, self.size)
            raise TelemetryError(f"{self.path} cannot be written: {error.strerror}; make room and resume") from error
        self.size += len(line)

    def rotate(self) -> None:
        """Move everything so far into a compressed part; the file is empty afterwards."""
        parts.rotate(self._descriptor(), self.path)
        self.size = 0

    def sync(self) -> None:
        """Wait until everything is on the disk itself."""
        _sync(self._descriptor())

    def close(self) -> None:
        """Let go of the file and its lock."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _descriptor(self) -> int:
        if self._fd is None:
            raise TelemetryError(f"the record {self.path} is closed; open a new Recorder to go on with it")
        return self._fd
