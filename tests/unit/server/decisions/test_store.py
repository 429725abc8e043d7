"""An answer waits for the disk: what `write` returned from is there, and what it could not write is refused."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from server.conftest import times_begun
from surefoot.data.journal import Entry, Journal, Row
from surefoot.errors import JournalError
from surefoot.server.decisions import store as stores
from surefoot.server.decisions.store import Store
from surefoot.server.http.problems import Refused


def entry(id: str, kind: str = "k", tag: str = "") -> Entry:
    return Entry(kind=kind, id=id, body={"id": id}, tag=tag)


def told(path: Path, story: Callable[[Store], Awaitable[Any]], **more: Any) -> Any:
    """What a story tells of a store that was started for it."""

    async def whole() -> Any:
        store = Store(path, **more)
        store.start(asyncio.get_running_loop())
        try:
            return await story(store)
        finally:
            store.close()

    return asyncio.run(asyncio.wait_for(whole(), 30))


def test_what_was_written_is_on_the_disk_when_write_returns(tmp_path: Path):
    async def story(store: Store) -> list[str]:
        await store.write(entry("a"), entry("b"))
        with Journal(tmp_path / "s.sqlite") as other:
            return [e.id for e in other.scan("k")]

    assert told(tmp_path / "s.sqlite", story) == ["a", "b"]


def test_it_is_read_by_id_by_kind_and_from_the_end(tmp_path: Path):
    async def story(store: Store) -> None:
        await store.write(entry("a", tag="x"), entry("b", tag="y"), entry("c", tag="x"), entry("d", kind="other"))
        assert store.journal.get("k", "a").body == {"id": "a"}
        assert store.journal.get("k", "d") is None
        found = store.journal.get("k", "b")
        assert found is not None
        assert (found.tag, store.journal.get("k", "nobody")) == ("y", None)
        assert [e.id for e in store.reader.scan("k")] == ["a", "b", "c"]
        assert [e.id for e in store.reader.latest("k", 2)] == ["b", "c"]
        assert [e.id for e in store.reader.latest("k", 2, tag="x")] == ["a", "c"]

    told(tmp_path / "s.sqlite", story)


def test_many_that_come_together_share_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    puts: list[int] = []
    put = Journal.put_rows

    def counted(self: Journal, rows: Sequence[Row]) -> None:
        puts.append(len(rows))
        put(self, rows)

    monkeypatch.setattr(Journal, "put_rows", counted)

    async def story(store: Store) -> int:
        await asyncio.gather(*(store.write(entry(str(i))) for i in range(50)))
        return store.journal.count("k")

    assert told(tmp_path / "s.sqlite", story) == 50
    assert sum(puts) == 50
    assert len(puts) < 50


def held(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """The disk takes its time until the event is set."""
    go, sync = threading.Event(), os.fdatasync

    def slow(file: int) -> None:
        go.wait()
        sync(file)

    monkeypatch.setattr(os, "fdatasync", slow)
    return go


def test_nobody_is_answered_before_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    go = held(monkeypatch)

    async def story(store: Store) -> list[bool]:
        task = asyncio.create_task(store.write(entry("a")))
        done = await asyncio.wait({task}, timeout=0.05)
        before = bool(done[0])
        go.set()
        await task
        return [before, task.done()]

    assert told(tmp_path / "s.sqlite", story) == [False, True]


def test_a_backlog_that_is_full_refuses_and_says_when_to_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    go = held(monkeypatch)

    async def story(store: Store) -> Refused:
        first = asyncio.create_task(store.write(entry("a")))
        await asyncio.sleep(0)
        waiting = [asyncio.create_task(store.write(entry(str(i)))) for i in range(2)]
        await asyncio.sleep(0)
        try:
            with pytest.raises(Refused) as refused:
                await store.write(entry("too many"))
        finally:
            go.set()
        await asyncio.gather(first, *waiting)
        assert store.journal.count("k") == 3
        return refused.value

    why = told(tmp_path / "s.sqlite", story, backlog=2)
    assert (why.status, why.headers["Retry-After"]) == (503, "1")


@pytest.mark.parametrize(
    ("error", "status", "later"),
    [
        (JournalError("nothing was written: database or disk is full"), 507, "30"),
        (JournalError("nothing was written: disk I/O error"), 503, "5"),
        (OSError("gone"), 503, "5"),
    ],
)
def test_what_the_disk_does_not_take_is_refused_and_the_next_one_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int, later: str
):
    put = Journal.put_rows

    async def story(store: Store) -> Refused:
        def broken(self: Journal, rows: Sequence[Row]) -> None:
            raise error

        monkeypatch.setattr(Journal, "put_rows", broken)
        with pytest.raises(Refused) as refused:
            await store.write(entry("a"))
        monkeypatch.setattr(Journal, "put_rows", put)
        await store.write(entry("b"))
        assert [e.id for e in store.reader.scan("k")] == ["b"]
        return refused.value

    why = told(tmp_path / "s.sqlite", story)
    assert (why.status, why.headers["Retry-After"]) == (status, later)


def test_a_store_that_closes_writes_what_waits_and_takes_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    go = held(monkeypatch)

    async def whole() -> Refused:
        store = Store(tmp_path / "s.sqlite")
        store.start(asyncio.get_running_loop())
        tasks = [asyncio.create_task(store.write(entry(str(i)))) for i in range(3)]
        await asyncio.sleep(0)
        assert not any(task.done() for task in tasks)
        go.set()
        store.close()
        await asyncio.gather(*tasks)
        with pytest.raises(Refused) as refused:
            await store.write(entry("late"))
        with pytest.raises(JournalError):
            store.reader.count("k")
        return refused.value

    why = asyncio.run(asyncio.wait_for(whole(), 30))
    assert (why.status, why.headers["Retry-After"]) == (503, "5")
    with Journal(tmp_path / "s.sqlite") as journal:
        assert journal.count("k") == 3


def test_who_stopped_waiting_does_not_disturb_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    go = held(monkeypatch)

    async def story(store: Store) -> int:
        gone, stays = (asyncio.create_task(store.write(entry(id))) for id in ("gone", "stays"))
        await asyncio.sleep(0.01)
        gone.cancel()
        await asyncio.sleep(0)
        go.set()
        await stays
        return store.journal.count("k")

    assert told(tmp_path / "s.sqlite", story) == 2


@pytest.mark.parametrize(("durability", "synced"), [("disk", True), ("process", False)])
def test_how_durable_it_is_can_be_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durability: Any, synced: bool
):
    """ "disk" has the log on the disk before it answers; "process" leaves that to the system."""
    asked: list[int] = []
    sync = os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda file: asked.append(file) or sync(file))

    async def story(store: Store) -> bool:
        await store.write(entry("a"))
        return bool(asked)

    assert told(tmp_path / "s.sqlite", story, durability=durability) is synced


def test_a_log_that_grows_under_writers_is_folded_while_they_wait_and_all_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(stores, "FOLD_EVERY", 0.01)
    monkeypatch.setattr(stores, "FOLD_BYTES", 4 * stores.PAGE)
    monkeypatch.setattr(stores, "HOLD_BYTES", 16 * stores.PAGE)
    log = tmp_path / "s.sqlite-wal"

    async def writer(store: Store, name: str) -> int:
        written = 0
        while times_begun(log) < 3:  # how many writes that takes is up to the disk
            await store.write(entry(f"{name}-{written}"))
            written += 1
        return written

    async def story(store: Store) -> tuple[int, int]:
        written = await asyncio.gather(*(writer(store, f"w{n}") for n in range(4)))
        for _ in range(1000):  # the rest of it is folded without anybody writing
            if store._grown < stores.FOLD_BYTES:
                break
            await asyncio.sleep(0.01)
        assert 0 <= store._grown < stores.FOLD_BYTES
        await store.write(entry("last"))
        return sum(written) + 1, store.journal.count("k")

    written, found = told(tmp_path / "s.sqlite", story)
    assert found == written
    with Journal(tmp_path / "s.sqlite") as journal:
        assert journal.count("k") == written
