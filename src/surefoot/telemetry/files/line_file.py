"""A file that grows by complete lines only."""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from surefoot.errors import TelemetryError
from surefoot.telemetry.files import rotation

_sync = getattr(os, "fdatasync", os.fsync)


class LineFile:
    """Append lines with one `write` each, so that a killed process leaves no partial line; hold the writer's lock.

    A background thread waits for the disk. Its error is raised by the next call that starts or awaits a `sync`.
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
        # True if there may be bytes that no sync has covered: also those of an earlier writer that was killed.
        self._unsynced = True
        self._disk = ThreadPoolExecutor(1, "record-sync")
        self._syncing: Future[None] | None = None

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._fd is None

    def append(self, line: bytes) -> None:
        """Write `line`, which ends in a newline. On a full disk nothing of it is written, and an error is raised."""
        fd = self._descriptor()
        try:
            written = os.write(fd, line)
            while written < len(line):  # a nearly full disk takes a part, then raises
                written += os.write(fd, line[written:])
        except OSError as error:
            os.ftruncate(fd, self.size)
            raise TelemetryError(
                f"{self.path} cannot be written: {error.strerror}; free disk space and resume"
            ) from error
        self.size += len(line)
        self._unsynced = True

    def rotate(self) -> None:
        """Move everything so far into a compressed part; the file is empty afterwards."""
        rotation.rotate(self._descriptor(), self.path)
        self.size = 0

    def begin_sync(self) -> None:
        """Start writing everything to the disk, in the background; do nothing if a sync is already running."""
        fd = self._descriptor()
        if self._syncing is not None and not self._syncing.done():
            return
        self._await()
        if self._unsynced:
            self._unsynced = False
            self._syncing = self._disk.submit(_sync, fd)

    def sync(self) -> None:
        """Wait until everything is on the disk."""
        self._await()
        self.begin_sync()
        self._await()

    def _await(self) -> None:
        if self._syncing is None:
            return
        try:
            self._syncing.result()
        except OSError as error:
            self._unsynced = True
            raise TelemetryError(
                f"{self.path} could not be synchronised to the disk: {error.strerror}; the disk may be failing or full"
            ) from error
        finally:
            if self._syncing.done():  # still running if Ctrl-C ended the wait
                self._syncing = None

    def close(self) -> None:
        """Close the file and release its lock, then raise the error of the last sync, if any."""
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
            raise TelemetryError(f"the record {self.path} is closed; open a new Recorder to continue it")
        return self._fd


class NoFile:
    """Discard all lines: for a run whose record is switched off."""

    last: rotation.Position | None = None
    torn_bytes = size = 0

    def __init__(self) -> None:
        self.closed = False

    def append(self, line: bytes) -> None:
        """Discard `line`."""
        if self.closed:
            raise TelemetryError("the record is closed; open a new Recorder to continue it")

    def rotate(self) -> None:
        """Do nothing."""

    def begin_sync(self) -> None:
        """Do nothing."""

    def sync(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Accept no more lines."""
        self.closed = True
