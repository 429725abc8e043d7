"""Read-only processes that share a port: the kernel distributes connections, and a process that dies is replaced."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

log = logging.getLogger("surefoot.server")
CHECK_SECONDS = 0.5


class Replicas:
    """A number of processes that run the same function. They end with this process, even if it is killed."""

    def __init__(self, count: int, work: Callable[..., None], *given: Any) -> None:
        self.count, self._work, self._given = count, work, given
        self._context = multiprocessing.get_context("spawn")
        self._running: list[tuple[Any, Connection]] = []

    def start(self) -> None:
        """Start all of them; they serve when they are ready."""
        self._running = [self._one() for _ in range(self.count)]

    async def watch(self) -> None:
        """Replace processes that died, until cancelled."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            for place, (process, life) in enumerate(self._running):
                if not process.is_alive():
                    log.warning("replica %d ended with code %s; another one takes its place", place, process.exitcode)
                    life.close()
                    self._running[place] = self._one()

    def close(self) -> None:
        """Stop all of them, and wait."""
        for _, life in self._running:
            life.close()
        for process, _ in self._running:
            process.join(timeout=15)
            if process.is_alive():
                process.kill()
        self._running = []

    def pids(self) -> list[int]:
        """Return the process ids."""
        return [process.pid for process, _ in self._running]

    def _one(self) -> tuple[Any, Connection]:
        mine, theirs = self._context.Pipe()
        process = self._context.Process(target=_live, args=(theirs, self._work, self._given), daemon=True)
        process.start()
        theirs.close()
        return process, mine


def _live(life: Connection, work: Callable[..., None], given: tuple[Any, ...]) -> None:
    """Run a replica; it ends when the parent closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent ends its replicas

    def end_with_parent() -> None:
        with contextlib.suppress(EOFError, OSError):
            life.recv_bytes()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end_with_parent, daemon=True).start()
    work(*given)
