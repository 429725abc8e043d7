"""Directories that appear whole or not at all, links that move in one step, and a lock that dies with its process.

Everything that changes the disk goes through `Fs`, eight verbs small, so that tests can fail the k-th call or replay
every state a power cut could leave behind.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Protocol

from surefoot.errors import RunError, RunLocked

TMP_PREFIX = ".tmp-"
REPLACED = ".replaced"
"""Suffix of a directory that is about to be replaced; until its successor is in place it is the one that counts."""

# Part of each temporary name: a restarted container often has the process id of the one before.
_TOKEN = os.urandom(4).hex()

# What a file system without symbolic links answers.
_NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP}


class Fs(Protocol):
    """What writing a checkpoint asks of a file system. `rename` replaces files and links, never a full directory."""

    def mkdir(self, path: Path) -> None: ...
    def write(self, path: Path, data: bytes) -> None:
        """A new file; it may be lost or torn by a power cut until `sync` returned."""
        ...

    def sync(self, path: Path) -> None: ...
    def sync_dir(self, path: Path) -> None:
        """Makes the names in a directory last: what was created, renamed or removed in it."""
        ...

    def rename(self, source: Path, target: Path) -> None: ...
    def symlink(self, target: str, path: Path) -> None: ...
    def unlink(self, path: Path) -> None: ...
    def remove_tree(self, path: Path) -> None: ...


class RealFs:
    """The operating system's own."""

    def mkdir(self, path: Path) -> None:
        path.mkdir()

    def write(self, path: Path, data: bytes) -> None:
        with open(path, "xb") as file:
            file.write(data)

    def sync(self, path: Path) -> None:
        # For writing: Windows refuses to flush a descriptor that can only read.
        _fsync(path, os.O_RDWR)

    def sync_dir(self, path: Path) -> None:
        # Windows cannot open a directory as a file; there the file system's journal keeps the order of names.
        if sys.platform != "win32":
            _fsync(path, os.O_RDONLY)

    def rename(self, source: Path, target: Path) -> None:
        os.replace(source, target)

    def symlink(self, target: str, path: Path) -> None:
        os.symlink(target, path)

    def unlink(self, path: Path) -> None:
        path.unlink()

    def remove_tree(self, path: Path) -> None:
        shutil.rmtree(path)


REAL_FS = RealFs()


def _fsync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def temporary_name(what: str) -> str:
    """A name that no reader looks at, and from which `retention.sweep` can tell whether its writer still lives."""
    return f"{TMP_PREFIX}{os.getpid()}-{_TOKEN}-{what}"


def writer_lives(temporary: str) -> bool:
    """Whether the process that made this temporary name may still be at work."""
    pid, _, rest = temporary.removeprefix(TMP_PREFIX).partition("-")
    if not pid.isdecimal():
        return False
    if int(pid) == os.getpid():
        return rest.startswith(_TOKEN)
    if sys.platform == "win32":
        return True  # There os.kill(pid, 0) sends ctrl-C instead of asking; a file too many is the smaller harm.
    try:
        os.kill(int(pid), 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True


def make_directory(fs: Fs, path: Path) -> None:
    """The directory and its missing parents, each name made to last. Nothing happens if it is there."""
    missing = [p for p in (path, *path.parents) if not p.exists()]
    for directory in reversed(missing):
        fs.mkdir(directory)
        fs.sync_dir(directory.parent)


def write_directory(
    fs: Fs, target: Path, files: Iterable[tuple[str, bytes]], ready: Callable[[], None] = lambda: None
) -> None:
    """`target` with these files, atomically: a crash leaves what was there before or all of the new.

    Just before the new takes its place, `ready` is called; if it raises, nothing has happened.

    An existing `target` steps aside under the name `target + ".replaced"` for the moment between two renames. A
    reader that finds only that one is looking at a crash in between, and the content is whole.
    """
    temporary = target.parent / temporary_name(target.name)
    try:
        fs.mkdir(temporary)
        for name, data in files:
            fs.write(temporary / name, data)
            fs.sync(temporary / name)
        fs.sync_dir(temporary)
        ready()
        _put_in_place(fs, temporary, target)
    except BaseException:
        # Also on ctrl-C: whatever ends the save, half of it must not stay behind.
        discard(fs, temporary)
        raise


def _put_in_place(fs: Fs, temporary: Path, target: Path) -> None:
    aside = target.with_name(target.name + REPLACED)
    if target.exists():
        if aside.exists():
            fs.remove_tree(aside)
        fs.rename(target, aside)
    try:
        fs.rename(temporary, target)
    except BaseException:
        if aside.exists():
            with suppress(OSError):
                fs.rename(aside, target)
        raise
    fs.sync_dir(target.parent)
    discard(fs, aside)


def replace_file(fs: Fs, target: Path, data: bytes) -> None:
    """`target` with this content, atomically."""
    temporary = target.parent / temporary_name(target.name)
    try:
        fs.write(temporary, data)
        fs.sync(temporary)
        fs.rename(temporary, target)
    except BaseException:
        discard(fs, temporary)
        raise
    fs.sync_dir(target.parent)


def set_link(fs: Fs, link: Path, name: str) -> None:
    """Points `link` at its sibling `name`, atomically. Without symbolic links it is a text file that holds the name."""
    temporary = link.parent / temporary_name(link.name)
    try:
        fs.symlink(name, temporary)
        fs.rename(temporary, link)
    except OSError as error:
        discard(fs, temporary)
        # Windows grants symbolic links only to developers and administrators.
        if error.errno not in _NO_LINKS and sys.platform != "win32":
            raise
        replace_file(fs, link, name.encode())
    else:
        fs.sync_dir(link.parent)


def read_link(link: Path) -> str | None:
    """The sibling that `set_link` named; None if there is no such link."""
    try:
        if link.is_symlink():
            return os.readlink(link)
        if link.is_file():
            with open(link, "rb") as file:
                return file.read(256).decode("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return None


def discard(fs: Fs, path: Path) -> None:
    """Removes a temporary file, link or directory if that can be done; a failed removal is left to `sweep`."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            fs.remove_tree(path)
        elif path.is_symlink() or path.exists():
            fs.unlink(path)


_held: set[int] = set()


def _close_in_child() -> None:
    # A forked worker shares the lock with its parent, and would keep the run locked after the parent was killed.
    for descriptor in _held:
        with suppress(OSError):
            os.close(descriptor)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)


class RunLock:
    """One writer for each run directory. The lock goes with the process, even by kill -9; the file stays."""

    def __init__(self, run_dir: Path) -> None:
        self.path = Path(run_dir) / ".lock"
        self._descriptor = -1

    def __enter__(self) -> RunLock:
        descriptor = -1
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
            free = _try_lock(descriptor)
        except OSError as error:
            if descriptor >= 0:
                os.close(descriptor)
            raise RunError(f"{self.path.parent} cannot be locked: {error.strerror}") from error
        if not free:
            owner = os.read(descriptor, 32).decode("ascii", "replace").strip()
            os.close(descriptor)
            who = f"process {owner}" if owner else "another process"
            raise RunLocked(f"{self.path.parent} is being written by {who}; wait for it, stop it, or use another run")
        with suppress(OSError):  # The name is a courtesy; on a full disk the lock holds without it.
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode())
        _held.add(descriptor)
        self._descriptor = descriptor
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._descriptor in _held:  # Not so in a forked child, which has already let go.
            _held.discard(self._descriptor)
            os.close(self._descriptor)
        self._descriptor = -1


if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        # Far behind the process id: a byte that is locked here cannot be read by others.
        os.lseek(descriptor, 1 << 20, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)
        return True

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
