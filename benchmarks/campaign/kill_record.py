"""T1: a run's record under fire: killed in mid-write, torn, rotated, and on a disk that is full."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import signal
import struct
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from campaign.frame import Block, Found, dice, from_tests

BUFFERED = "lines are still in memory when they are reported as safe"
GLUED = "a torn last line is not removed"
HALF = "a full disk leaves half a line"
SHORT = "a write that is cut short twice counts as complete"
TEAR = b'{"kind":"update","v":"2.0'
A_RECORD = 100
"""Kills of one record, which is read whole after each; then another one is begun."""


@contextlib.contextmanager
def with_defect(defect: str) -> Iterator[None]:
    from surefoot.telemetry.files import line_file, rotation

    with contextlib.ExitStack() as undo:

        def patch(thing: Any, name: str, new: Any) -> None:
            undo.callback(setattr, thing, name, getattr(thing, name))
            setattr(thing, name, new)

        if defect == BUFFERED:
            append, held = line_file.LineFile.append, list[bytes]()

            def later(self: Any, line: bytes) -> None:
                held.append(line)
                if len(held) >= 4000:
                    append(self, b"".join(held))
                    held.clear()

            patch(line_file.LineFile, "append", later)
        elif defect == GLUED:
            settle = rotation.settle

            def as_it_is(fd: int, path: Path) -> Any:
                before = os.pread(fd, os.fstat(fd).st_size, 0)
                last, torn = settle(fd, path)
                if torn:
                    os.write(fd, before[-torn:])
                return last, 0

            patch(rotation, "settle", as_it_is)
        elif defect == HALF:
            patch(line_file.os, "ftruncate", lambda fd, size: None)
        elif defect == SHORT:

            def twice(self: Any, line: bytes) -> None:
                try:
                    written = line_file.os.write(self._fd, line)
                    if written < len(line):
                        line_file.os.write(self._fd, line[written:])
                except OSError as error:
                    os.ftruncate(self._fd, self.size)
                    raise line_file.TelemetryError("no room") from error
                self.size += len(line)
                self._fresh = True

            patch(line_file.LineFile, "append", twice)
        yield


def check(count: int, defect: str = "") -> Found:
    found, rng = Found(), dice(6)
    with with_defect(defect), tempfile.TemporaryDirectory() as place:
        if defect not in (HALF, SHORT):
            for begin in range(0, count, A_RECORD):
                _kills(found, Path(place) / f"killed{begin}", min(A_RECORD, count - begin), rng)
        if defect in ("", HALF, SHORT):
            _full_disks(found, Path(place), max(4, count // 2))
    return found


def _kills(found: Found, folder: Path, kills: int, rng: random.Random) -> None:
    from surefoot.telemetry.reader import read_all
    from surefoot.telemetry.writer import Recorder

    write_for_ever = from_tests("e2e/test_record_kills.py").write_for_ever
    folder.mkdir()
    tears = 0
    for _ in range(kills):
        safe = _kill_one(write_for_ever, folder, rng)
        found.tried += 1
        found.kills += 1
        found.acknowledged += 1
        live = folder / "telemetry.ndjson"
        if rng.random() < 0.5 and live.exists() and live.stat().st_size:
            with live.open("ab") as file:  # a power cut may tear what a kill cannot
                file.write(TEAR)
            tears += 1
        reading = read_all(folder)
        found.lost += max((record.updates for record in reading.records), default=0) < safe
        found.unreadable += not reading.records
        if len(reading.problems) > 1:
            found.fault(f"{len(reading.problems)} lines cannot be read")
    Recorder(folder, "doomed").close("finished")
    reading = read_all(folder)
    told = {"torn lines": tears, "parts": len(list(folder.glob("telemetry.*.gz"))), "lines": len(reading.records)}
    found.notes |= {name: found.notes.get(name, 0) + number for name, number in told.items()}
    for problem in reading.problems:
        found.fault(f"at the end: {problem}")
    if [record.seq for record in reading.records] != list(range(1, len(reading.records) + 1)):
        found.fault("the lines' numbers have gaps")


def _kill_one(write_for_ever: Any, folder: Path, rng: random.Random) -> int:
    """Kills a writer at a random moment; the number of the last line it was promised."""
    mine, told = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            write_for_ever(folder, told)
        finally:
            os._exit(1)
    os.close(told)
    first = os.read(mine, 8)
    time.sleep(rng.uniform(0.0, 0.02))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    safe = struct.unpack("<q", first)[0] if first else 0
    while more := os.read(mine, 8):
        safe = struct.unpack("<q", more)[0]
    os.close(mine)
    return safe


def _full_disks(found: Found, place: Path, count: int) -> None:
    """The disk takes some bytes of a line, at times some more, and then none; afterwards there is room again."""
    from surefoot.errors import TelemetryError
    from surefoot.telemetry.files import line_file
    from surefoot.telemetry.reader import read_all
    from surefoot.telemetry.writer import Recorder

    rng, write = dice(7), os.write
    for number in range(count):
        folder, taken, gulps = place / f"full{number}", rng.randrange(1, 50), 1 + number % 2
        recorder = Recorder(folder, "full", updates_per_second=1e9)
        recorder.event("before")
        calls: list[int] = []

        def nearly_full(fd: int, data: bytes, taken: int = taken, gulps: int = gulps, calls: list[int] = calls) -> int:
            calls.append(fd)
            if len(calls) <= gulps:
                return write(fd, data[:taken])
            raise OSError(errno.ENOSPC, "No space left on device")

        line_file.os.write = nearly_full
        try:
            recorder.event("lost")
        except TelemetryError:
            pass
        else:
            found.silent += 1
        finally:
            line_file.os.write = write
        recorder.event("after")
        recorder.close("finished")
        reading = read_all(folder)
        found.tried += 1
        if reading.problems or [getattr(r, "name", "") for r in reading.records][:2] != ["before", "after"]:
            found.fault(f"a disk that was full after {taken} bytes left {[str(p) for p in reading.problems][:1]}")
    found.notes["full disks"] = count


BLOCK = Block(
    name="T1",
    title="kill -9 of the writer of a record, torn lines, full disks",
    over="telemetry",
    unit="kills and full disks",
    smoke=10,
    count=100,
    long=5000,
    check=check,
    mutants={BUFFERED: 6, GLUED: 8, HALF: 4, SHORT: 4},
)
