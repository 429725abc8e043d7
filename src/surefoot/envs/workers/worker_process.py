"""A worker process and both ends of the pipe to it."""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Protocol

from surefoot.errors import EnvError, SurefootError

# Seconds that workers have to close their envs before they are killed.
_PATIENCE = 5.0
# Seconds between checks whether a silent worker's process still runs: its pipe may stay open after its end, because a
# process that its envs started has inherited it.
_CHECK_EVERY = 0.2
# Seconds after which a worker that stopped in the middle of a message counts as silent.
_STUCK = 30
_PROGRAM = (
    "import sys; from importlib import import_module; target, pipe, memory, *sys.path = sys.argv[1:]; "
    "getattr(import_module(target), 'main')(int(pipe), int(memory))"
)


class WorkerProcess:
    """One process that runs `main(pipe, memory)` of the module `target`, and the pipe to it."""

    def __init__(self, target: str, memory: int, number: int = 0, rows: slice = slice(0)) -> None:
        self.number, self.rows = number, rows
        self.ready = False
        """True once its envs are built."""
        self.steps = 0
        """Number of step commands so far."""
        self.began = self.sent_at = time.monotonic()
        """When it was started, and when the last command was sent."""
        parent, child = socket.socketpair()
        with parent, child:
            for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
                parent.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", _STUCK, 0))
            # A separate process group: Ctrl-C in a terminal is sent to the whole group of the parent.
            self.process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, target, str(child.fileno()), str(memory), *sys.path],
                stdin=subprocess.DEVNULL,
                pass_fds=(child.fileno(), memory),
                process_group=0,
            )
            self.connection = Connection(parent.detach())
        self._pipe = self.connection.fileno()
        self._poll = select.poll()
        self._poll.register(self._pipe, select.POLLIN)
        self._request = 0

    def ask(self, command: str, arguments: tuple[Any, ...] = ()) -> None:
        self._request = (self._request + 1) % 256
        self.sent_at = time.monotonic()
        if command == "step":  # two bytes; the actions are in shared memory
            self.steps += 1
            os.write(self._pipe, bytes((STEP, self._request)))
            return
        os.write(self._pipe, bytes((COMMAND, self._request)))
        self.connection.send((command, arguments))

    def receive(self, limit: float) -> Any:
        """Return the response to the last command; drop older ones, which Ctrl-C left unread."""
        while True:
            if not self.has_answer(self.sent_at + limit):
                raise TimeoutError
            kind, number = read_head(self._pipe)
            response = self.connection.recv() if kind == MESSAGE else None
            if number == self._request:
                return response

    def has_answer(self, until: float) -> bool:
        """Return True as soon as there is a response, False at time `until`; raise EOFError if the process has ended."""
        while True:
            left = until - time.monotonic()
            if self._poll.poll(max(0.0, min(left, _CHECK_EVERY)) * 1000):
                return True
            if self.process.poll() is not None and not self._poll.poll(0):
                raise EOFError
            if left <= 0:
                return False

    def end(self, *, silent: bool) -> str | None:
        """End the process and those its envs started. Return how it ended by itself; None if it had to be killed."""
        code = self._exit_code(0.0 if silent else 1.0)
        # SIGKILL ends a stopped process, too. It raises OSError if no process is left in the group.
        with suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        if code is None:
            self.process.kill()
            # Wait: until it has ended it may write to shared memory. (One that hangs in a system call does not end, nor write.)
            self._exit_code(_PATIENCE)
        self.connection.close()
        if code is None:
            return None
        return f"ended with exit code {code}" if code >= 0 else f"was ended by {signal.Signals(-code).name}"

    def _exit_code(self, seconds: float) -> int | None:
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None


STEP, COMMAND, DONE, MESSAGE = range(4)
"""First byte of every message; the second is the number of the request. After COMMAND and MESSAGE a pickle follows."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception that is sent to the parent."""

    error: SurefootError
    trace: str | None
    """The worker's traceback; None for an error in this process, which has its own."""


class Served(Protocol):
    """What a worker process serves: its public methods are the commands of the parent."""

    def step(self) -> None:
        """The only command without arguments and without a response object."""
        ...

    def close(self) -> None:
        """Called when the parent has closed the pipe."""
        ...


def serve(pipe: int, memory: int, share: Served) -> None:
    """Serve commands until the parent closes the pipe or ends."""
    # The parent handles Ctrl-C and termination: it may want to finish the current update.
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    for file in (pipe, memory):  # not for processes that an env starts: the pipe would stay open after this one ends
        os.set_inheritable(file, False)
    connection = Connection(pipe)
    try:
        _serve(connection, share)
    except (EOFError, ConnectionError):
        pass
    finally:
        share.close()


def _serve(connection: Connection, share: Served) -> None:
    pipe = connection.fileno()
    while True:
        kind, number = read_head(pipe)
        try:
            if kind == STEP:
                share.step()
                os.write(pipe, bytes((DONE, number)))
                continue
            name, arguments = connection.recv()
            response = getattr(share, name)(*arguments)
        except (EOFError, ConnectionError):
            raise
        except Exception as error:
            if not isinstance(error, SurefootError) or type(error).__module__ != "surefoot.errors":
                error = EnvError(f"a worker failed: {error!r}")  # the parent may not be able to import its class
            response = Failure(error, traceback.format_exc())
        os.write(pipe, bytes((MESSAGE, number)))
        connection.send(response)


def read_head(pipe: int) -> bytes:
    """Return the first two bytes of a message; raise EOFError if the other side has closed the pipe."""
    head = os.read(pipe, 2)
    if len(head) == 1:
        head += os.read(pipe, 1)
    if len(head) < 2:
        raise EOFError
    return head


class WorkerTraceback(Exception):
    """A worker's traceback, as the cause of the error that its world raises."""


def raise_failure(response: Any) -> None:
    """Raise the error of a response that is a `Failure`."""
    if isinstance(response, Failure):
        if response.trace is None:
            raise response.error
        raise response.error from WorkerTraceback(response.trace)


def dismiss(workers: Sequence[WorkerProcess]) -> None:
    """Close the pipes, on which workers end; wait for them, and kill those that do not end."""
    for worker in workers:
        worker.connection.close()
    until = time.monotonic() + _PATIENCE
    for worker in workers:
        try:
            worker.process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            worker.process.kill()
            worker.process.wait()
