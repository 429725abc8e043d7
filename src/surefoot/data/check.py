"""Test a store: write, reopen, share it between threads, and kill the process while it writes."""

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
    """The protocol of a store. `Journal` is one."""

    def put(self, *entries: Entry) -> None:
        """Write entries, all or none; they must be durable when this returns."""
        ...

    def get(self, kind: str, id: str) -> Entry | None:
        """Return the entry of that id, or None."""
        ...

    def scan(self, kind: str) -> Iterable[Entry]:
        """Return all entries of a kind in the order in which they were first written."""
        ...

    def close(self) -> None: ...


def check_store(make: Callable[[Path], KeepsEntries], *, kills: int = 5, seed: int = 0) -> list[str]:
    """Test a store and return one sentence per problem; [] if there are none.

    Args:
        make: Opens the store at a path; called several times for the same path.
        kills: How many times to kill a writing process at a random moment. Every entry whose `put` returned must exist
            afterwards.
        seed: Seed of those moments.
    """
    problems: list[str] = []
    with tempfile.TemporaryDirectory(prefix="surefoot-check-") as folder:
        for test in (_check_durability, _check_replacement, _all_or_none, _check_threads):
            try:
                problems += test(make, Path(folder) / test.__name__)
            except Exception as error:
                problems.append(f"the store raised in the test {test.__name__.strip('_')}: {error!r}")
        if not problems:
            problems += _check_kills(make, Path(folder) / "killed", kills, random.Random(seed))
    return problems


def _entry(id: str, body: Any = None) -> Entry:
    return Entry(kind=_KIND, id=id, body={"id": id} if body is None else body, number=0.5, raw=b"\0\xff")


def _check_durability(make: Callable[[Path], KeepsEntries], path: Path) -> list[str]:
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
        return [f"after reopening, entry 'a' is {got}; body, number and raw must be unchanged"]
    if missing is not None:
        return ["get returns an entry for an id that was never put; it must return None"]
    return (
        []
        if ids == ["b", "a", "c"]
        else [f"scan returns {ids}; it must return entries in the order of their put: b, a, c"]
    )


def _check_replacement(make: Callable[[Path], KeepsEntries], path: Path) -> list[str]:
    store = make(path)
    try:
        store.put(_entry("a", 1))
        store.put(_entry("a", 2))
        bodies = [entry.body for entry in store.scan(_KIND)]
    finally:
        store.close()
    return (
        []
        if bodies == [2]
        else [f"an id that was put twice has the bodies {bodies}; it must exist once, with the last body"]
    )


def _all_or_none(make: Callable[[Path], KeepsEntries], path: Path) -> list[str]:
    store = make(path)
    try:
        try:
            store.put(_entry("good"), _entry("bad", object()))
            return ["an entry whose body is not JSON was accepted without an error"]
        except Exception:
            remaining = [entry.id for entry in store.scan(_KIND)]
        store.put(_entry("next"))
        after = [entry.id for entry in store.scan(_KIND)]
    finally:
        store.close()
    if remaining:
        return [f"{remaining} was stored by a put that failed; a put must write all of its entries or none"]
    return [] if after == ["next"] else ["after a put that failed, the next put was not stored"]


def _check_threads(make: Callable[[Path], KeepsEntries], path: Path) -> list[str]:
    store, problems = make(path), list[str]()

    def write(thread: int) -> None:
        try:
            for i in range(10):
                store.put(_entry(f"{thread}-{i}"))
                if store.get(_KIND, f"{thread}-{i}") is None:
                    problems.append(
                        f"entry '{thread}-{i}' did not exist right after its put, while other threads wrote"
                    )
        except Exception as error:
            problems.append(f"put failed while other threads wrote: {error!r}")

    threads = [threading.Thread(target=write, args=(n,)) for n in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    stored = len({entry.id for entry in store.scan(_KIND)})
    store.close()
    return problems[:1] or ([] if stored == 60 else [f"six threads put 60 entries, {stored} exist"])


def _check_kills(make: Callable[[Path], KeepsEntries], path: Path, kills: int, rng: random.Random) -> list[str]:
    acknowledged: list[str] = []
    for life in range(kills):
        acknowledged += _until_killed(make, path, life, rng)
        try:
            store = make(path)
            stored = [entry.id for entry in store.scan(_KIND)]
            store.close()
        except Exception as error:
            return [f"after kill number {life + 1} the store cannot be opened: {error!r}"]
        if lost := set(acknowledged) - set(stored):
            return [f"{len(lost)} of {len(acknowledged)} acknowledged entries are lost after {life + 1} kills"]
        if len(stored) != len(set(stored)):
            return [f"some ids exist twice after {life + 1} kills"]
    if kills and not acknowledged:
        return ["no entry was acknowledged before a kill; put may be very slow"]
    return []


def _until_killed(make: Callable[[Path], KeepsEntries], path: Path, life: int, rng: random.Random) -> list[str]:
    """Return the ids that a child process put before it was killed.

    Every other child kills itself right after a put; the others are killed from outside, at any moment.
    """
    reader, writer = os.pipe()
    count, itself = rng.randint(1, 5), life % 2 == 0
    child = os.fork()
    if child == 0:
        try:
            store, number = make(path), 0
            while True:
                store.put(_entry(f"{life}-{number}"))
                os.write(writer, f"{life}-{number}\n".encode())
                number += 1
                if itself and number == count:
                    os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    os.close(writer)
    with open(reader, "rb") as lines:
        first = [lines.readline() for _ in range(count)]
        if not itself:
            time.sleep(0.02 * rng.random())
            os.kill(child, signal.SIGKILL)
        others = lines.readlines()
    os.waitpid(child, 0)
    return [line.decode().strip() for line in first + others if line.endswith(b"\n")]
