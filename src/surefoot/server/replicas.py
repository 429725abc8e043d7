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
# Time without a dead replica; the kernel sends connections to the others meanwhile.
CHECK_SECONDS = 0.5


class Replicas:
    """A number of processes that run the same function. They end with this process, even if it is killed."""

    def __init__(self, count: int, work: Callable[..., None], *arguments: Any) -> None:
        self.count, self._work, self._arguments = count, work, arguments
        self._context = multiprocessing.get_context("spawn")
        self._running: list[tuple[Any, Connection]] = []

    def start(self) -> None:
        """Start all processes; they serve when they are ready."""
        self._running = [self._one() for _ in range(self.count)]

    async def watch(self) -> None:
        """Replace processes that end, until cancelled."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            for i, (process, pipe) in enumerate(self._running):
                if not process.is_alive():
                    log.warning("replica %d ended with code %s and is replaced", i, process.exitcode)
                    pipe.close()
                    self._running[i] = self._one()

    def close(self) -> None:
        """Stop all processes and wait for them."""
        for _, pipe in self._running:
            pipe.close()
        for process, _ in self._running:
            # Longer than a replica takes to drain.
            process.join(timeout=15)
            if process.is_alive():
                process.kill()
        self._running = []

    def pids(self) -> list[int]:
        return [process.pid for process, _ in self._running]

    def _one(self) -> tuple[Any, Connection]:
        parent, child = self._context.Pipe()
        process = self._context.Process(target=_run_replica, args=(child, self._work, self._arguments), daemon=True)
        # The child's end is closed here, so that the pipe breaks when the child ends.
        process.start()
        child.close()
        return process, parent


def _run_replica(pipe: Connection, work: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    """Run a replica; it ends when the parent closes the pipe."""
    # Ctrl-C reaches the whole process group; the parent stops its replicas itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def end_with_parent() -> None:
        with contextlib.suppress(EOFError, OSError):
            pipe.recv_bytes()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end_with_parent, daemon=True).start()
    work(*arguments)
