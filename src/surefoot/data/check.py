"""What is wrong with a store, found by using it: written, reopened, shared by threads, and killed while it writes."""

from __future__ import annotations

import os
import random
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

from surefoot.data.journal import Entry

_KIND = "check"


class KeepsEntries(Protocol):
    """What a store must be able to do. `Journal` is one."""

    def put(self, *entries: Entry) -> None:
        """Write entries, together or not at all; they must last once this returns."""
        ...

    def get(self, kind: str, id: str) -> Entry | None:
        """The entry of that id, or None."""
        ...

    def scan(self, kind: str) -> Iterable[Entry]:
        """All entries of a kind in the order they were first written."""
        ...

    def close(self) -> None:
        """Let go of the file."""
        ...


def check_store(make: Callable[[Path], KeepsEntries], *, kills: int = 5, seed: int = 0) -> list[str]:
    """Test a store and return its problems, one sentence each; [] if there are none.

    What `put` acknowledged must still be there after the process was killed at a random moment.

    Args:
        make: Opens a store on a path.
        kills: How often a process that writes is killed.
        seed: Seed of the moments at which it is killed.
    """
    found: list[str] = []
    with tempfile.TemporaryDirectory(prefix="surefoot-check-") as place:
        looks = (_lasts, _replaces, _all_or_none, _shared)
        for look in looks:
            try:
                found += look(make, Path(place) / look.__name__)
            except Exception as error:
                found.append(f"it failed while it was looked at ({look.__name__.strip('_')}): {error!r}")
        if not found:
            found += _killed(make, Path(place) / "killed", kills, random.Random(seed))
    return found


def _entry(id: str, body: Any = None) -> Entry:
    return Entry(kind=_KIND, id=id, body={"id": id} if body is None else body, number=0.5, raw=b"\0\xff")


def _lasts(make: Callable[[Path], KeepsEntries], path: Path) -> list[str]:
    store = make(path)
    store.put(_entry("b"), _entry("a"))
    store.put(_entry("c"))
    store.close()
    store = make(path)
    try:
        got, ids = store.get(_KIND, "a"), [entry.id for entry in store.scan(_KIND)]
        missing = store.get(_KIND, "nobody")
    finally:
        store.close()
    if got is None or (got.body, got.number, got.raw) != ({"id": "a"}, 0.5, b"\0\xff"):
        return [f"after reopening, entry 'a' is {got}; body, number and raw must come back as they were put"]
    if missing is not None:
        return ["get returns an entry for an id that was never put; it must return None"]
    return [] if ids == ["b", "a", "c"] else [f"scan gives {ids}; entries come in the order they were put: b, a, c"]


def _replaces(make: Callable[[Path], KeepsEntries], path: Path) -> list[str]:
    store = make(path)
    try:
        store.put(_entry("a", 1))
        store.put(_entry("a", 2))
        bodies = [entry.body for entry in store.scan(_KIND)]
    finally:
        store.close()
    return (
        [] if bodies == [2] else [f"an id that was put twice is there as {bodies}; it must be there once, as put last"]
    )


def _all_or_none(make: Callable[[Path], KeepsEntries], path: Path) -> list[str]:
    store = make(path)
    try:
        try:
            store.put(_entry("good"), _entry("bad", object()))
            return ["an entry whose body is no JSON was taken without an error"]
        except Exception:
            left = [entry.id for entry in store.scan(_KIND)]
        store.put(_entry("next"))
        after = [entry.id for entry in store.scan(_KIND)]
    finally:
        store.close()
    if left:
        return [f"{left} was kept of a put that failed; entries of one put are written together or not at all"]
    return [] if after == ["next"] else ["after a put that failed, the next one was not stored"]


def _shared(make: Callable[[Path], KeepsEntries], path: Path) -> list[str]:
    store, found = make(path), list[str]()

    def write(thread: int) -> None:
        try:
            for i in range(10):
                store.put(_entry(f"{thread}-{i}"))
                if store.get(_KIND, f"{thread}-{i}") is None:
                    found.append(f"entry '{thread}-{i}' was not there right after its put, while others wrote too")
        except Exception as error:
            found.append(f"put failed while other threads wrote too: {error!r}")

    threads = [threading.Thread(target=write, args=(n,)) for n in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    stored = len({entry.id for entry in store.scan(_KIND)})
    store.close()
    return found[:1] or ([] if stored == 60 else [f"six threads put 60 entries, {stored} are there"])


def _killed(make: Callable[[Path], KeepsEntries], path: Path, kills: int, rng: random.Random) -> list[str]:
    acknowledged: list[str] = []
    for life in range(kills):
        acknowledged += _until_killed(make, path, life, rng)
        try:
            store = make(path)
            there = [entry.id for entry in store.scan(_KIND)]
            store.close()
        except Exception as error:
            return [f"after kill number {life + 1} it cannot be opened: {error!r}"]
        if lost := set(acknowledged) - set(there):
            return [f"{len(lost)} of {len(acknowledged)} acknowledged entries are lost after {life + 1} kills"]
        if len(there) != len(set(there)):
            return [f"some ids are there twice after {life + 1} kills"]
    if kills and not acknowledged:
        return ["no entry was acknowledged before a kill; put may be very slow"]
    return []


def _until_killed(make: Callable[[Path], KeepsEntries], path: Path, life: int, rng: random.Random) -> list[str]:
    """The ids that a child put before it was killed: in turns right after one of them, and at any moment."""
    mine, told = os.pipe()
    count, own = rng.randint(1, 5), life % 2 == 0
    child = os.fork()
    if child == 0:
        try:
            store, number = make(path), 0
            while True:
                store.put(_entry(f"{life}-{number}"))
                os.write(told, f"{life}-{number}\n".encode())
                number += 1
                if own and number == count:
                    os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    os.close(told)
    with open(mine, "rb") as lines:
        first = [lines.readline() for _ in range(count)]
        if not own:
            time.sleep(0.02 * rng.random())
            os.kill(child, signal.SIGKILL)
        rest = lines.readlines()
    os.waitpid(child, 0)
    return [line.decode().strip() for line in first + rest if line.endswith(b"\n")]
