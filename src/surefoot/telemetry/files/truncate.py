"""Truncation of a record at a checkpoint: a resumed run writes the later lines again."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from surefoot.telemetry.files import rotation
from surefoot.telemetry.schema import VERSION, EventRecord


@dataclass(frozen=True, slots=True)
class _Cut:
    """The first line to remove: its file, its offset there, its `seq`, and the line before it."""

    part: Path
    offset: int
    first_seq: int
    before: rotation.Position | None


def truncate_after(path: Path | str, updates: int) -> int:
    """Remove every line after update number `updates`; return how many. For resuming from a checkpoint.

    An event "resumed" reports what was removed. `seq` continues from the highest number ever used, so that a program
    that follows the record never reads a number twice. Does nothing if there is no record.
    """
    live = rotation.live_file(Path(path))
    if not live.exists():
        return 0
    fd = rotation.open_locked(live)
    try:
        last, torn = rotation.settle(fd, live)
        if last is None:
            return 0
        cut, lines = _find(live, updates)
        if cut:
            _remove(fd, live, cut)
        position = (cut.before if cut else last) or last
        event = EventRecord(
            v=VERSION,
            run=last.run,
            seq=last.seq + 1,
            t=time.time(),
            env_steps=position.env_steps,
            updates=min(position.updates, updates),
            name="resumed",
            message=f"resumed after update {updates}; removed {lines} later lines, which are written again",
            data={"cut_lines": lines, "torn_bytes": torn} | ({"cut_seq": [cut.first_seq, last.seq]} if cut else {}),
        )
        os.write(fd, msgspec.json.encode(event) + b"\n")
        os.fsync(fd)
        return lines
    finally:
        os.close(fd)


def _find(live: Path, updates: int) -> tuple[_Cut | None, int]:
    """Return the first line after update `updates` and the number of lines from there on."""
    cut: _Cut | None = None
    before: rotation.Position | None = None
    steps, lines = 0, 0
    for part in [*rotation.rotated_parts(live), live]:
        offset = 0
        with rotation.open_part(part) as file:
            for line in file:
                current = rotation.position(line)
                if cut is None and current:
                    # Minibatches and episodes of the next update have the number of the last finished one.
                    partial = current.kind == "minibatch" or (current.kind == "episode" and current.env_steps > steps)
                    if current.updates > updates or (current.updates == updates and partial):
                        cut = _Cut(part, offset, current.seq, before)
                    else:
                        before = current
                        steps = current.env_steps if current.kind == "update" else steps
                lines += cut is not None
                offset += len(line)
    return cut, lines


def _remove(fd: int, live: Path, cut: _Cut) -> None:
    """End the record at `cut`. If interrupted at any point, it can be repeated with the same result."""
    if cut.part == live:
        os.ftruncate(fd, cut.offset)
        return
    os.ftruncate(fd, 0)
    older = rotation.rotated_parts(live)
    for part in reversed(older[older.index(cut.part) + 1 :]):
        part.unlink()
    with rotation.open_part(cut.part) as old, os.fdopen(os.dup(fd), "wb") as new:
        new.write(old.read(cut.offset))
    os.fsync(fd)
    cut.part.unlink()
    rotation.sync_folder(live.parent)
