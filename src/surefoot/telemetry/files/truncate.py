"""Taking back what a resumed run will make again."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from surefoot.telemetry.files import rotation
from surefoot.telemetry.schema import VERSION, EventRecord


@dataclass(frozen=True, slots=True)
class _Place:
    """The first line to go: its file, where it begins there, and what stands around it."""

    part: Path
    offset: int
    first_seq: int
    before: rotation.Position | None


def truncate_after(path: Path | str, updates: int) -> int:
    """Cut away every line that came after update number `updates`; how many there were. For resuming from a checkpoint.

    An event "resumed" says what was cut. `seq` goes on from the highest ever used, so that nobody who followed the
    record sees a number twice. Without a record there is nothing to cut and nothing is written.
    """
    live = rotation.live_file(Path(path))
    if not live.exists():
        return 0
    fd = rotation.open_locked(live)
    try:
        last, torn = rotation.settle(fd, live)
        if last is None:
            return 0
        place, lines = _find(live, updates)
        if place:
            _cut(fd, live, place)
        _report(fd, updates, lines, torn, place, last)
        return lines
    finally:
        os.close(fd)


def _find(live: Path, updates: int) -> tuple[_Place | None, int]:
    """Where the first line after update `updates` is, and how many lines follow from there on."""
    place: _Place | None = None
    before: rotation.Position | None = None
    steps, lines = 0, 0
    for part in [*rotation.rotated_parts(live), live]:
        offset = 0
        with rotation.open_part(part) as file:
            for line in file:
                here = rotation.position(line)
                # What was written on the way to the next update comes after, though no update was counted since.
                if (
                    place is None
                    and here
                    and (
                        here.updates > updates
                        or (here.updates == updates and here.kind == "minibatch")
                        or (here.updates == updates and here.kind == "episode" and here.env_steps > steps)
                    )
                ):
                    place = _Place(part, offset, here.seq, before)
                if place is None and here:
                    before = here
                    steps = here.env_steps if here.kind == "update" else steps
                lines += place is not None
                offset += len(line)
    return place, lines


def _cut(fd: int, live: Path, place: _Place) -> None:
    """End the record at `place`. Interrupted at any point, it can be done again with the same result."""
    if place.part == live:
        os.ftruncate(fd, place.offset)
        return
    os.ftruncate(fd, 0)
    older = rotation.rotated_parts(live)
    for part in reversed(older[older.index(place.part) + 1 :]):
        part.unlink()
    with rotation.open_part(place.part) as old, os.fdopen(os.dup(fd), "wb") as new:
        new.write(old.read(place.offset))
    os.fsync(fd)
    place.part.unlink()
    rotation.sync_folder(live.parent)


def _report(fd: int, updates: int, lines: int, torn: int, place: _Place | None, last: rotation.Position) -> None:
    at = (place.before if place else last) or last
    event = EventRecord(
        v=VERSION,
        run=last.run,
        seq=last.seq + 1,
        t=time.time(),
        env_steps=at.env_steps,
        updates=min(at.updates, updates),
        name="resumed",
        message=f"went on after update {updates}; {lines} later lines were cut away and are made again",
        data={"cut_lines": lines, "torn_bytes": torn} | ({"cut_seq": [place.first_seq, last.seq]} if place else {}),
    )
    os.write(fd, msgspec.json.encode(event) + b"\n")
    os.fsync(fd)
