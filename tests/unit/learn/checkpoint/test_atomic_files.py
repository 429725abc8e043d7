"""Directories appear whole, links move in one step, and a run has one writer."""

import errno
import os
import signal
import subprocess
import sys

import pytest

from surefoot.errors import RunError, RunLocked
from surefoot.learn.checkpoint.atomic_files import (
    REAL_FS,
    RealFs,
    RunLock,
    make_directory,
    read_link,
    replace_file,
    set_link,
    temporary_name,
    write_directory,
    writer_is_running,
)


class Failing(RealFs):
    """The disk is full whenever `verb` is asked for."""

    def __init__(self, verb):
        def full(*_):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        setattr(self, verb, full)


def test_a_directory_appears_with_all_its_files(tmp_path):
    write_directory(REAL_FS, tmp_path / "new", [("a", b"1"), ("b", b"")])
    assert sorted(os.listdir(tmp_path)) == ["new"]
    assert (tmp_path / "new" / "a").read_bytes() == b"1"
    assert (tmp_path / "new" / "b").read_bytes() == b""


@pytest.mark.parametrize("verb", ["write", "sync", "sync_dir", "rename"])
def test_a_directory_that_cannot_be_finished_leaves_the_old_one_and_no_rubbish(tmp_path, verb):
    write_directory(REAL_FS, tmp_path / "x", [("a", b"old")])
    with pytest.raises(OSError, match="No space left"):
        write_directory(Failing(verb), tmp_path / "x", [("a", b"new")])
    assert os.listdir(tmp_path) == ["x"]
    assert (tmp_path / "x" / "a").read_bytes() == b"old"


def test_if_the_new_cannot_take_its_place_the_old_returns_to_it(tmp_path):
    class Stubborn(RealFs):
        def rename(self, source, target):
            if source.name.startswith(".tmp-"):
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            super().rename(source, target)

    write_directory(REAL_FS, tmp_path / "x", [("a", b"old")])
    with pytest.raises(OSError, match="Input/output"):
        write_directory(Stubborn(), tmp_path / "x", [("a", b"new")])
    assert os.listdir(tmp_path) == ["x"]
    assert (tmp_path / "x" / "a").read_bytes() == b"old"


def test_what_an_interrupted_replacement_left_does_not_stop_the_next(tmp_path):
    for name in ("x", "x.replaced"):
        write_directory(REAL_FS, tmp_path / name, [("a", b"old")])
    write_directory(REAL_FS, tmp_path / "x", [("a", b"new")])
    assert os.listdir(tmp_path) == ["x"]
    assert (tmp_path / "x" / "a").read_bytes() == b"new"


def test_a_replaced_file_is_synced_then_named_then_its_name_synced(tmp_path):
    calls = []

    class Noting(RealFs):
        def sync(self, path):
            calls.append("sync")

        def rename(self, source, target):
            calls.append("rename")
            super().rename(source, target)

        def sync_dir(self, path):
            calls.append("sync_dir")

    for data in (b"1", b"2"):
        replace_file(Noting(), tmp_path / "x", data)
    assert calls == ["sync", "rename", "sync_dir"] * 2
    assert (tmp_path / "x").read_bytes() == b"2"


def test_a_source_of_files_that_breaks_off_leaves_no_rubbish(tmp_path):
    def files():
        yield "a", b"1"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_directory(REAL_FS, tmp_path / "x", files())
    assert os.listdir(tmp_path) == []


def test_every_file_and_directory_is_synced_before_its_name_is_used(tmp_path):
    calls = []

    class Noting(RealFs):
        def sync(self, path):
            calls.append(("sync", path.name))

        def sync_dir(self, path):
            calls.append(("sync_dir", path.name.split("-")[-1]))

        def rename(self, source, target):
            calls.append(("rename", target.name))
            super().rename(source, target)

    write_directory(Noting(), tmp_path / "x", [("a", b""), ("b", b"")])
    parent = tmp_path.name.split("-")[-1]
    assert calls == [("sync", "a"), ("sync", "b"), ("sync_dir", "x"), ("rename", "x"), ("sync_dir", parent)]


def test_missing_parents_are_made_and_their_names_synced(tmp_path):
    synced = []

    class Noting(RealFs):
        def sync_dir(self, path):
            synced.append(path)

    make_directory(Noting(), tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    assert synced == [tmp_path, tmp_path / "a"]
    make_directory(Failing("mkdir"), tmp_path / "a" / "b")


def test_a_link_moves_from_one_name_to_the_next(tmp_path):
    for name in ("one", "two"):
        set_link(REAL_FS, tmp_path / "latest", name)
        assert read_link(tmp_path / "latest") == name
    assert os.listdir(tmp_path) == ["latest"]


def test_a_link_that_cannot_move_stays_where_it_was(tmp_path):
    set_link(REAL_FS, tmp_path / "latest", "one")
    with pytest.raises(OSError, match="No space left"):
        set_link(Failing("rename"), tmp_path / "latest", "two")
    assert os.listdir(tmp_path) == ["latest"]
    assert read_link(tmp_path / "latest") == "one"


def test_no_link_and_a_file_that_is_no_text_read_as_none(tmp_path):
    assert read_link(tmp_path / "latest") is None
    (tmp_path / "latest").write_bytes(b"\xff\xfe")
    assert read_link(tmp_path / "latest") is None


def test_the_writer_of_a_temporary_name_is_known_to_live(monkeypatch):
    assert writer_is_running(temporary_name("000001"))
    assert not writer_is_running(f".tmp-{os.getpid()}-feedbeef-000001"), "another process had our id before us"

    def not_ours(pid, number):
        raise PermissionError

    monkeypatch.setattr(os, "kill", not_ours)
    assert writer_is_running(".tmp-1-feedbeef-000001")


def test_a_second_lock_is_refused_and_names_the_process(tmp_path):
    with RunLock(tmp_path), pytest.raises(RunLocked, match=f"written by process {os.getpid()};"):
        RunLock(tmp_path).__enter__()
    with RunLock(tmp_path):
        pass


def test_a_lock_in_a_directory_that_is_not_there_is_a_run_error(tmp_path):
    with pytest.raises(RunError, match="cannot be locked: No such file"):
        RunLock(tmp_path / "nowhere").__enter__()


HOLDER = """
import os, sys, time
from pathlib import Path
from surefoot.learn.checkpoint.atomic_files import RunLock
with RunLock(Path(sys.argv[1])):
    if os.fork() == 0:
        print(os.getpid(), flush=True)  # By the worker itself: by then it has let go of the lock.
    time.sleep(60)
"""


def test_a_killed_process_lets_go_even_if_its_forked_worker_lives_on(tmp_path):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    worker = int(holder.stdout.readline())
    try:
        with pytest.raises(RunLocked, match=f"process {holder.pid};"):
            RunLock(tmp_path).__enter__()
        holder.kill()
        holder.wait()
        os.kill(worker, 0)
        with RunLock(tmp_path):
            pass
    finally:
        os.kill(worker, signal.SIGKILL)
        holder.stdout.close()
