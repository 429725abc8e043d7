"""What was put is there: from other threads, after reopening, replaced in place, and never half."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import numpy as np
import pytest

from surefoot.data.journal import Entry, Journal
from surefoot.errors import JournalError


def entry(id: str, number: float = 0.0, tag: str = "", kind: str = "k") -> Entry:
    return Entry(kind=kind, id=id, body={"n": number}, tag=tag, number=number)


def test_entries_come_back_after_reopening_in_the_order_they_were_written(tmp_path: Path):
    with Journal(tmp_path / "j.sqlite") as journal:
        journal.put(entry("a", 1.0), entry("b", 2.0))
        journal.put(entry("c", 3.0, kind="other"))
    with Journal(tmp_path / "j.sqlite") as journal:
        assert [e.id for e in journal.scan("k")] == ["a", "b"]
        assert journal.count("other") == 1
        assert [e.id for e in journal.latest("k", 1)] == ["b"]


def test_the_same_id_again_replaces_the_body_and_keeps_its_place(tmp_path: Path):
    with Journal(tmp_path / "j.sqlite") as journal:
        journal.put(entry("a", 1.0), entry("b", 2.0))
        journal.put(entry("a", 9.0))
        assert [(e.id, e.number) for e in journal.scan("k")] == [("a", 9.0), ("b", 2.0)]


def test_many_threads_share_commits_and_lose_nothing(tmp_path: Path):
    with Journal(tmp_path / "j.sqlite") as journal:

        def write(thread: int) -> None:
            for i in range(20):
                journal.put(entry(f"{thread}-{i}"))
                assert journal.has("k", f"{thread}-{i}"), "acknowledged means there"

        threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert journal.count("k") == 160


def test_tallies_count_average_and_tell_how_many_reach_a_number(tmp_path: Path):
    with Journal(tmp_path / "j.sqlite") as journal:
        journal.put(entry("a", 1.0, "x"), entry("b", 0.0, "x"), entry("c", 0.5, "y"))
        assert journal.tallies("k", 0.5) == {"x": (2, 0.5, 1), "y": (1, 0.5, 1)}


def test_keeping_the_latest_removes_the_oldest(tmp_path: Path):
    with Journal(tmp_path / "j.sqlite") as journal:
        journal.put(*(entry(str(i)) for i in range(10)))
        assert journal.keep_latest("k", 3) == 7
        assert [e.id for e in journal.scan("k")] == ["7", "8", "9"]


def test_a_sample_has_no_entry_twice(tmp_path: Path):
    with Journal(tmp_path / "j.sqlite") as journal:
        journal.put(*(entry(str(i)) for i in range(50)))
        ids = [e.id for e in journal.sample("k", 20, np.random.default_rng(0))]
        assert len(ids) == len(set(ids)) == 20


def test_a_file_that_is_no_database_and_one_of_another_format_are_refused(tmp_path: Path):
    (tmp_path / "text.sqlite").write_text("hello, I am not a database at all, really not")
    with pytest.raises(JournalError, match="cannot be used"):
        Journal(tmp_path / "text.sqlite")
    db = sqlite3.connect(tmp_path / "new.sqlite")
    db.execute("PRAGMA user_version=7")
    db.close()
    with pytest.raises(JournalError, match="format 7"):
        Journal(tmp_path / "new.sqlite")


def test_a_closed_journal_says_so(tmp_path: Path):
    journal = Journal(tmp_path / "j.sqlite")
    journal.close()
    journal.close()
    with pytest.raises(JournalError, match="closed"):
        journal.put(entry("a"))


def full(journal: Journal) -> None:
    """No page may be added any more, as on a full disk."""
    (pages,) = journal._db.execute("PRAGMA page_count").fetchone()
    journal._db.execute(f"PRAGMA max_page_count={pages}")


def test_a_full_disk_is_said_and_what_was_there_stays(tmp_path: Path):
    with Journal(tmp_path / "j.sqlite") as journal:
        journal.put(entry("a"))
        full(journal)
        with pytest.raises(JournalError, match="nothing was written to .*full"):
            journal.put(entry("b"), Entry(kind="k", id="c", body="x" * 100_000))
        assert [e.id for e in journal.scan("k")] == ["a"]
        journal._db.execute("PRAGMA max_page_count=100000")
        journal.put(entry("d"))
        assert [e.id for e in journal.scan("k")] == ["a", "d"]


def test_an_entry_that_cannot_be_stored_is_refused_and_the_next_one_is_not_held_up(tmp_path: Path):
    with Journal(tmp_path / "j.sqlite") as journal:
        with pytest.raises(JournalError, match="nothing was written"):
            journal.put(entry("good"), entry("bad \ud800 id"))
        journal.put(entry("next"))
        assert [e.id for e in journal.scan("k")] == ["next"]


def test_each_of_those_who_shared_a_commit_that_failed_is_told_whatever_came_after(tmp_path: Path):
    """The leader's commit fails; a later one succeeds before the others have woken up."""
    told: dict[str, str] = {}
    with Journal(tmp_path / "j.sqlite") as journal:
        began, go, commit = threading.Event(), threading.Event(), journal._commit
        calls: list[int] = []

        def slow(sql: str, rows: list[tuple]) -> int:
            calls.append(len(rows))
            if len(calls) == 1:
                began.set()
                go.wait()
            if len(calls) == 2:
                raise sqlite3.OperationalError("disk I/O error")
            return commit(sql, rows)

        def put(id: str) -> None:
            try:
                journal.put(entry(id))
                told[id] = "stored"
            except JournalError:
                told[id] = "refused"

        journal._commit = slow
        threads = [threading.Thread(target=put, args=(id,)) for id in ("first", "b", "c", "d")]
        threads[0].start()
        began.wait()
        for each in threads[1:]:
            each.start()
        while len(journal._waiting) < 3:
            pass
        go.set()
        for each in threads:
            each.join()
        put("last")
        assert calls == [1, 3, 1]
        assert told == {"first": "stored", "b": "refused", "c": "refused", "d": "refused", "last": "stored"}
        assert {e.id for e in journal.scan("k")} == {"first", "last"}
