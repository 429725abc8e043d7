"""K5: every disk that a power cut can leave behind a save and a commit, and every call of a save that can fail."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

from campaign.frame import Block, Found, from_tests

NO_SYNC = "a save does not wait for the disk"
ONE_BY_ONE = "entries of one commit are written one by one"
IN_PLACE = "a save writes over the old checkpoint"
CODES = (errno.EIO, errno.ENOSPC, errno.EMFILE, errno.EROFS)


def check(count: int, defect: str = "") -> Found:
    """`count` is the number of states at least; fewer leave out kinds of faults, never states of one save."""
    states = from_tests("property/test_checkpoint_states.py")
    found = Found()
    if defect in ("", NO_SYNC):
        _saves(found, states, defect)
    if defect in ("", ONE_BY_ONE):
        _commits(found, one_by_one=bool(defect))
    if defect in ("", IN_PLACE):
        _faults(found, states, CODES if count > 500 else CODES[:1], in_place=defect == IN_PLACE)
    if found.tried < count and not defect:
        found.fault(f"only {found.tried} states were found, {count} were meant")
    return found


def _saves(found: Found, states: Any, defect: str) -> None:
    """A save over an old checkpoint, of the next step and of the same one; and the first save of all."""
    seen = 0
    for step in (2, 1, 0):
        with tempfile.TemporaryDirectory() as place:
            root, before = Path(place), {}
            if step:
                states.save_checkpoint(root, 1, states.OLD)
                before = states.read_disk(root)
            calls = states.record_save(root, step or 1)
        if defect:
            calls = _without_the_first_sync(calls)
            during, after = [], [states.loads_as(disk) for disk in states.crash_states(before, calls)]
        else:
            during, after = states.verdicts(before, calls)
        seen += len(during) + len(after)
        good = {0, 1} if step else {"missing", 1}
        found.unreadable += sum(v in ("corrupt", "missing") and v not in good for v in during)
        found.silent += sum(v == "mixed" for v in (*during, *after))
        found.lost += sum(v != 1 for v in after)
    found.tried += seen
    found.notes["disks after a save"] = seen


def _without_the_first_sync(calls: list[Any]) -> list[Any]:
    first = next(i for i, call in enumerate(calls) if call[0] == "sync")
    return calls[:first] + calls[first + 1 :]


def _commits(found: Found, *, one_by_one: bool) -> None:
    """The write-ahead log cut off at each of its bytes' eighths of a kilobyte, plain, torn and with zeros behind."""
    from surefoot.data.journal import Entry, Journal
    from surefoot.errors import JournalError

    three = [Entry(kind="k", id=f"new{i}", body={"n": "x" * 700}) for i in range(3)]
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "j.sqlite"
        journal = Journal(file)
        journal.put(*(Entry(kind="k", id=f"old{i}", body=i) for i in range(3)))
        sizes = _sizes(file)
        for part in [[e] for e in three] if one_by_one else [three]:
            journal.put(*part)
        whole = {p.name: p.read_bytes() for p in Path(place).iterdir()}
        mode = journal._query("PRAGMA synchronous", ())[0][0]
        journal.close()
        if mode != 2:
            found.fault(f"synchronous is {mode}, not 2 (FULL): a commit would not wait for the disk")
        log, grown = whole["j.sqlite-wal"], sizes["j.sqlite-wal"]
        cuts = sorted({grown, len(log), *range(grown, len(log), 128)})
        for cut, tail in itertools.product(cuts, (b"", b"\0" * 4096, os.urandom(512))):
            scratch = Path(place) / "scratch"
            scratch.mkdir()
            (scratch / "j.sqlite").write_bytes(whole["j.sqlite"])
            (scratch / "j.sqlite-wal").write_bytes(log[:cut] + tail)
            found.tried += 1
            try:
                with Journal(scratch / "j.sqlite") as again:
                    ids = {entry.id for entry in again.scan("k")}
            except (JournalError, sqlite3.Error):
                found.unreadable += 1
            else:
                new = {i for i in ids if i.startswith("new")}
                found.lost += len({"old0", "old1", "old2"} - ids) + (cut == len(log) and len(new) < 3)
                found.silent += len(new) not in (0, 3)
            shutil.rmtree(scratch)
        found.notes["logs after a commit"] = 3 * len(cuts)


def _sizes(file: Path) -> dict[str, int]:
    return {p.name: p.stat().st_size for p in file.parent.iterdir()}


def _faults(found: Found, states: Any, codes: tuple[int, ...], *, in_place: bool) -> None:
    """Call number k of a save fails, once or for good, for every k."""
    tried = 0
    for code, for_good, step in itertools.product(codes, (False, True), (2, 1)):
        for k in itertools.count(1):
            with tempfile.TemporaryDirectory() as place:
                root = Path(place)
                states.save_checkpoint(root, 1, states.OLD, fs=states.NoSync())
                disk = states.Faulty(k, code, for_good)
                error = _overwrite(root, states, disk) if in_place else states.failure(root, step, disk)
                tried += 1
                _judge(found, root, states, error, code)
            if not disk.failed:
                break
    found.tried += tried
    found.notes["calls that failed"] = tried


def _judge(found: Found, root: Path, states: Any, error: Any, code: int) -> None:
    from surefoot.errors import CheckpointError
    from surefoot.learn.checkpoint.checkpoint import load_checkpoint

    try:
        loaded = load_checkpoint(root)
    except CheckpointError:
        found.unreadable += 1
        return
    which = states.which(loaded.parts)
    found.silent += which == "mixed"
    found.lost += error is None and which != 1
    if error is not None and os.strerror(code) not in str(error):
        found.fault(f"the error does not say why: {error}")


def _overwrite(root: Path, states: Any, disk: Any) -> Exception | None:
    """The mutant: the new files are written over those of step 1, one after the other."""
    with tempfile.TemporaryDirectory() as place:
        made = states.save_checkpoint(Path(place), 1, states.NEW, fs=states.NoSync())
        try:
            for path in sorted(made.iterdir()):
                (root / "000001" / path.name).unlink()
                disk.write(root / "000001" / path.name, path.read_bytes())
        except OSError as error:
            return error
    return None


BLOCK = Block(
    name="K5",
    title="every state of the disk that a power cut can leave, every system call that can fail",
    over="checkpoints, store",
    unit="states",
    smoke=500,
    count=1000,
    long=1000,
    check=check,
    mutants={NO_SYNC: 1, ONE_BY_ONE: 1, IN_PLACE: 1},
)
