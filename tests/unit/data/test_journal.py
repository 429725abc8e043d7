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


def test_an_entry_that_was_not_written_has_no_place_yet():
    assert (entry("a").seq, entry("a").t) == (0, 0.0)


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


@pytest.fixture
def ten(tmp_path: Path):
    """Ten entries, five of each tag, numbered 0 … 9; another kind between them."""
    with Journal(tmp_path / "deep" / "j.sqlite", durability="process") as journal:  # many commits, no promise to try
        for i in range(10):
            journal.put(entry(f"e{i}", float(i), "odd" if i % 2 else "even"), entry(f"o{i}", kind="other"))
        yield journal


def test_an_entry_is_found_by_kind_and_id_with_all_it_holds(ten: Journal):
    ten.put(Entry(kind="k", id="whole", body=[1, "a"], tag="t", number=2.5, raw=b"\0\1", t=17.0))
    found = ten.get("k", "whole")
    assert found is not None
    assert (found.kind, found.id, found.body, found.tag, found.number) == ("k", "whole", [1, "a"], "t", 2.5)
    assert (found.raw, found.t) == (b"\0\1", 17.0)
    assert found.seq == 21
    assert ten.get("other", "e1") is None
    assert ten.has("k", "e1")
    assert not ten.has("other", "e1")


def test_an_entry_without_a_time_has_that_of_its_writing(ten: Journal):
    found = ten.get("k", "e0")
    assert found is not None
    assert found.t > 1.6e9


def test_the_latest_are_returned_oldest_first_also_of_a_tag(ten: Journal):
    assert [e.id for e in ten.latest("k", 3)] == ["e7", "e8", "e9"]
    assert [e.id for e in ten.latest("k", 2, tag="even")] == ["e6", "e8"]


def test_a_scan_goes_on_after_a_number_and_stops_at_a_limit(ten: Journal):
    first = list(ten.scan("k", limit=2))
    assert [e.id for e in first] == ["e0", "e1"]
    assert [e.id for e in ten.scan("k", after=first[-1].seq, limit=3)] == ["e2", "e3", "e4"]
    assert len(list(ten.scan("k"))) == 10
    assert [e.id for e in ten.pick("k", [5, 1, 2, 999])] == ["e0", "e2"], "2 is of another kind"


def test_who_is_below_a_number_and_before_a_place(ten: Journal):
    assert ten.below("k", 3.0, before=5) == [1, 3]
    assert ten.below("k", 3.0, before=100) == [1, 3, 5]
    assert ten.seq_range("k") == (1, 19)
    assert ten.seq_range("nothing") == (0, 0)


def test_a_sample_of_more_than_there_is_is_everything_and_a_small_one_is_drawn(ten: Journal):
    assert [e.id for e in ten.sample("k", 10, np.random.default_rng(0))] == [f"e{i}" for i in range(10)]
    assert len(ten.sample("k", 99, np.random.default_rng(0))) == 10
    drawn = [tuple(e.id for e in ten.sample("k", 3, np.random.default_rng(s))) for s in range(40)]
    assert all(len(set(ids)) == 3 for ids in drawn)
    assert {id for ids in drawn for id in ids} == {f"e{i}" for i in range(10)}, "the first and the last too"


def test_what_is_removed_is_counted_and_only_of_its_kind(ten: Journal):
    assert ten.delete("k", [1, 3, 2, 999]) == 2
    assert [e.id for e in ten.scan("k", limit=1)] == ["e2"]
    assert ten.keep_latest("k", 8) == 0
    assert ten.keep_latest("k", 7) == 1
    assert ten.count("other") == 10
    ten.clear("k")
    assert (ten.count("k"), ten.count("other")) == (0, 10)


def test_tallies_without_numbers_are_nan_and_reach_nothing(tmp_path: Path):
    with Journal(tmp_path / "j.sqlite") as journal:
        journal.put(Entry(kind="k", id="a", body=0, tag="x"))
        count, mean, good = journal.tallies("k")["x"]
        assert (count, good) == (1, 0)
        assert np.isnan(mean)
        journal.put(entry("b", 0.0, "y"))
        assert journal.tallies("k")["y"] == (1, 0.0, 1), "0 reaches 0"


def test_compacting_gives_space_back(tmp_path: Path):
    with Journal(tmp_path / "j.sqlite") as journal:
        journal.put(*(Entry(kind="k", id=str(i), body="x" * 1000) for i in range(300)))
        journal.clear("k")
        journal.compact()
        assert (tmp_path / "j.sqlite").stat().st_size < 100_000
        assert (tmp_path / "j.sqlite-wal").stat().st_size == 0


@pytest.mark.parametrize(("durability", "mode"), [("disk", 2), ("process", 1)])
def test_it_is_in_wal_mode_and_waits_for_the_disk_unless_told_otherwise(tmp_path: Path, durability, mode: int):
    with Journal(tmp_path / "j.sqlite", durability=durability) as journal:
        assert journal._query("PRAGMA journal_mode", ()) == [("wal",)]
        assert journal._query("PRAGMA synchronous", ()) == [(mode,)]
        assert journal._query("PRAGMA user_version", ()) == [(1,)]
    with Journal(tmp_path / "k.sqlite") as journal:
        assert journal._query("PRAGMA synchronous", ()) == [(2,)]


def test_reading_and_removing_from_a_closed_journal_say_so_too(tmp_path: Path):
    journal = Journal(tmp_path / "j.sqlite")
    journal.close()
    for ask in (
        lambda: journal.get("k", "a"),
        lambda: journal.delete("k", [1]),
        lambda: journal.keep_latest("k", 1),
        lambda: journal.clear("k"),
        lambda: journal.compact(),
    ):
        with pytest.raises(JournalError, match="closed"):
            ask()
