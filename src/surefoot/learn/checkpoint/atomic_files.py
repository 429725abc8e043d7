"""Atomic directories, files and links, and a lock that the operating system releases when its process ends.

All changes of the disk go through the eight methods of `Fs`, so that tests can fail the k-th call or replay every state
that a power cut could leave.
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
"""Suffix of a directory that is being replaced; until its successor is in place, it is the valid one."""

# Part of each temporary name: after a restart of a container the process id is often the same as before.
_TOKEN = os.urandom(4).hex()

# Errors of file systems without symbolic links.
_NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP}


class Fs(Protocol):
    """The file-system calls that writing a checkpoint needs. `rename` replaces files and links, not full directories."""

    def mkdir(self, path: Path) -> None: ...
    def write(self, path: Path, data: bytes) -> None:
        """Create a file; a power cut can lose or tear it until `sync` has returned."""
        ...

    def sync(self, path: Path) -> None: ...
    def sync_dir(self, path: Path) -> None:
        """Make what was created, renamed or removed in a directory durable."""
        ...

    def rename(self, source: Path, target: Path) -> None: ...
    def symlink(self, target: str, path: Path) -> None: ...
    def unlink(self, path: Path) -> None: ...
    def remove_tree(self, path: Path) -> None: ...


class RealFs:
    """The file system of the operating system."""

    def mkdir(self, path: Path) -> None:
        path.mkdir()

    def write(self, path: Path, data: bytes) -> None:
        with open(path, "xb") as file:
            file.write(data)

    def sync(self, path: Path) -> None:
        # Opened for writing: Windows refuses to flush a read-only descriptor.
        _fsync(path, os.O_RDWR)

    def sync_dir(self, path: Path) -> None:
        # Windows cannot open a directory as a file; its journal keeps the order of names.
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
    """Return a name that readers ignore and that holds the process id of its writer, for `retention.sweep`."""
    return f"{TMP_PREFIX}{os.getpid()}-{_TOKEN}-{what}"


def writer_is_running(temporary: str) -> bool:
    """Return True if the process that made this temporary name may still be running."""
    pid, _, token = temporary.removeprefix(TMP_PREFIX).partition("-")
    if not pid.isdecimal():
        return False
    if int(pid) == os.getpid():
        return token.startswith(_TOKEN)
    if sys.platform == "win32":
        return True  # os.kill(pid, 0) would send ctrl-C there; a leftover file does less harm
    try:
        os.kill(int(pid), 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True


def make_directory(fs: Fs, path: Path) -> None:
    """Create the directory and its missing parents durably; do nothing if it exists."""
    # A new directory is durable only once its parent is synced too.
    missing = [p for p in (path, *path.parents) if not p.exists()]
    for directory in reversed(missing):
        fs.mkdir(directory)
        fs.sync_dir(directory.parent)


def write_directory(
    fs: Fs, target: Path, files: Iterable[tuple[str, bytes]], ready: Callable[[], None] = lambda: None
) -> None:
    """Write the directory `target` with these files atomically: a crash leaves the old content or all of the new.

    `ready` is called just before the new directory takes its place; if it raises, nothing has changed.

    An existing `target` is renamed to `target + ".replaced"` between two renames. If only that one exists, a crash
    happened in between, and its content is complete.
    """
    temporary = target.parent / temporary_name(target.name)
    try:
        fs.mkdir(temporary)
        # Every file is durable before the rename makes the directory visible.
        for name, data in files:
            fs.write(temporary / name, data)
            fs.sync(temporary / name)
        fs.sync_dir(temporary)
        ready()
        previous = target.with_name(target.name + REPLACED)
        if target.exists():
            if previous.exists():
                fs.remove_tree(previous)
            fs.rename(target, previous)
        try:
            fs.rename(temporary, target)
        except BaseException:
            if previous.exists():
                with suppress(OSError):
                    fs.rename(previous, target)
            raise
        fs.sync_dir(target.parent)
        discard(fs, previous)
    except BaseException:
        # Also on ctrl-C: no partial directory may remain.
        discard(fs, temporary)
        raise


def replace_file(fs: Fs, target: Path, data: bytes) -> None:
    """Write the file `target` atomically."""
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
    """Point `link` at its sibling `name` atomically; without symbolic links, write a text file with the name."""
    temporary = link.parent / temporary_name(link.name)
    try:
        fs.symlink(name, temporary)
        fs.rename(temporary, link)
    except OSError as error:
        discard(fs, temporary)
        # Windows allows symbolic links only to developers and administrators.
        if error.errno not in _NO_LINKS and sys.platform != "win32":
            raise
        replace_file(fs, link, name.encode())
    else:
        fs.sync_dir(link.parent)


def read_link(link: Path) -> str | None:
    """Return the sibling that `set_link` named, or None if there is no such link."""
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
    """Remove a temporary file, link or directory if possible; `sweep` removes what is left."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            fs.remove_tree(path)
        elif path.is_symlink() or path.exists():
            fs.unlink(path)


_held: set[int] = set()


def _close_in_child() -> None:
    # A forked worker shares the lock and would keep the run locked after its parent was killed.
    for descriptor in _held:
        with suppress(OSError):
            os.close(descriptor)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)


class RunLock:
    """Allow one writer per run directory. The lock ends with the process, even by kill -9; the file stays."""

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
        with suppress(OSError):  # the process id is only for the message; on a full disk the lock holds without it
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode())
        _held.add(descriptor)
        self._descriptor = descriptor
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._descriptor in _held:  # a forked child has already closed it
            _held.discard(self._descriptor)
            os.close(self._descriptor)
        self._descriptor = -1


if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        # Far behind the process id: other processes cannot read a locked byte on Windows.
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
