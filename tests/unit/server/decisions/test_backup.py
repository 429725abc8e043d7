"""Backup, restore, purge."""

from __future__ import annotations

import time

import pytest

from server.conftest import ROW
from surefoot.data.journal import Journal
from surefoot.errors import JournalError, RunError, RunLocked
from surefoot.server.decisions.backup import backup, purge, restore, seconds_of

DECIDE = "/v1/policies/greet/decisions"


def fill(serving):
    async def story(ask):
        for i in range(6):
            await ask("POST", DECIDE, {"decision_id": f"d{i}", "embedding": ROW, "subject": f"user-{i % 2}"})
            await ask("POST", f"/v1/decisions/d{i}/reward", {"value": 0.5})

    serving(story)


def test_a_backup_is_taken_while_it_serves_and_served_again(serving, tmp_path):
    async def story(ask):
        await ask("POST", DECIDE, {"decision_id": "x", "embedding": ROW})
        return backup(tmp_path / "d", tmp_path / "copy")

    assert serving(story) == 1
    assert restore(tmp_path / "copy", tmp_path / "again") == 1
    with pytest.raises(RunError, match="already exists"):
        restore(tmp_path / "copy", tmp_path / "again")
    (tmp_path / "d").rename(tmp_path / "old")
    (tmp_path / "again").rename(tmp_path / "d")

    async def later(ask):
        return (await ask("POST", "/v1/decisions/x/reward", {"value": 1})).status

    assert serving(later) == 200


def test_a_damaged_backup_is_not_restored(serving, tmp_path):
    fill(serving)
    backup(tmp_path / "d", tmp_path / "copy")
    path = tmp_path / "copy/decisions.sqlite"
    raw = bytearray(path.read_bytes())
    raw[4096:8192] = b"\xff" * 4096
    path.write_bytes(raw)
    with pytest.raises(JournalError, match="damaged"):
        restore(tmp_path / "copy", tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_all_about_a_subject_is_deleted_and_nothing_else(serving, tmp_path):
    fill(serving)
    gone = purge(tmp_path / "d", subject="user-1")
    assert (gone.decisions, gone.rewards) == (3, 3)
    with Journal(tmp_path / "d/decisions.sqlite") as journal:
        assert [e.id for e in journal.scan("decision")] == ["d0", "d2", "d4"]
        assert [e.id for e in journal.scan("reward")] == ["d0#0", "d2#0", "d4#0"]
    assert b"user-1" not in (tmp_path / "d/decisions.sqlite").read_bytes()


def test_what_is_old_is_deleted(serving, tmp_path, monkeypatch):
    fill(serving)
    assert purge(tmp_path / "d", older_than=3600.0).decisions == 0
    now = time.time()
    monkeypatch.setattr("surefoot.server.decisions.backup.time.time", lambda: now + 7200.0)
    assert purge(tmp_path / "d", older_than=3600.0).decisions == 6


def test_nothing_is_deleted_under_a_running_service(serving, tmp_path):
    async def story(ask):
        with pytest.raises(RunLocked):
            purge(tmp_path / "d", older_than=0.0)

    serving(story)
    with pytest.raises(RunError, match=r"decisions\.sqlite"):
        purge(tmp_path / "nowhere", older_than=0.0)


def test_times_are_numbers_with_a_unit():
    assert [seconds_of(x) for x in ("90s", "2m", "1.5h", "30d", "1w")] == [90, 120, 5400, 2_592_000, 604_800]
    with pytest.raises(RunError, match="30d"):
        seconds_of("soon")
