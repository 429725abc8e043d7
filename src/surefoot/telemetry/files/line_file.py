"""A file that only ever grows by whole lines."""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from surefoot.errors import TelemetryError
from surefoot.telemetry.files import rotation

_sync = getattr(os, "fdatasync", os.fsync)


class LineFile:
    """Appends lines, one `write` each, so that a killed process leaves no half of one; holds the writer's lock.

    The disk is waited for in a thread of its own: its error is raised by the next call that begins or awaits a `sync`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        fd = rotation.open_locked(path)
        try:
            self.last, self.torn_bytes = rotation.settle(fd, path)
        except BaseException:
            os.close(fd)
            raise
        self._fd: int | None = fd
        self.size = os.fstat(fd).st_size
        self._fresh = True
        """Something may have been written since the last sync began: by us, or by a writer who was killed."""
        self._disk = ThreadPoolExecutor(1, "record-sync")
        self._syncing: Future[None] | None = None

    @property
    def closed(self) -> bool:
        """True once `close` was called."""
        return self._fd is None

    def append(self, line: bytes) -> None:
        """Write `line`, which ends in a newline; all of it, or (on a full disk) nothing and an error."""
        fd = self._descriptor()
        try:
            written = os.write(fd, line)
            while written < len(line):  # the disk is nearly full, and will say so
                written += os.write(fd, line[written:])
        except OSError as error:
            os.ftruncate(fd, self.size)
            raise TelemetryError(f"{self.path} cannot be written: {error.strerror}; make room and resume") from error
        self.size += len(line)
        self._fresh = True

    def rotate(self) -> None:
        """Move everything so far into a compressed part; the file is empty afterwards."""
        rotation.rotate(self._descriptor(), self.path)
        self.size = 0

    def begin_sync(self) -> None:
        """Push everything to the disk itself, beside whatever comes next; where a push is under way, later."""
        fd = self._descriptor()
        if self._syncing is not None and not self._syncing.done():
            return
        self._await()
        if self._fresh:
            self._fresh = False
            self._syncing = self._disk.submit(_sync, fd)

    def sync(self) -> None:
        """Wait until everything is on the disk itself."""
        self._await()
        self.begin_sync()
        self._await()

    def _await(self) -> None:
        if self._syncing is None:
            return
        try:
            self._syncing.result()
        except OSError as error:
            self._fresh = True
            raise TelemetryError(
                f"{self.path} could not be pushed to the disk: {error.strerror}; the disk may be failing or full"
            ) from error
        finally:
            if self._syncing.done():  # not so where Ctrl-C ended the wait
                self._syncing = None

    def close(self) -> None:
        """Let go of the file and its lock; what the disk last said is told after that."""
        if self._fd is None:
            return
        try:
            self._await()
        finally:
            self._disk.shutdown()
            os.close(self._fd)
            self._fd = None

    def _descriptor(self) -> int:
        if self._fd is None:
            raise TelemetryError(f"the record {self.path} is closed; open a new Recorder to go on with it")
        return self._fd


class NoFile:
    """Takes lines and keeps none: for a run whose record is switched off."""

    last: rotation.Position | None = None
    torn_bytes = size = 0

    def __init__(self) -> None:
        self.closed = False

    def append(self, line: bytes) -> None:
        """Forget `line`."""
        if self.closed:
            raise TelemetryError("the record is closed; open a new Recorder to go on with it")

    def rotate(self) -> None:
        """Nothing is there to be moved."""

    def begin_sync(self) -> None:
        """Nothing is there to be pushed."""

    def sync(self) -> None:
        """Nothing is there to be waited for."""

    def close(self) -> None:
        """Take no more."""
        self.closed = True
