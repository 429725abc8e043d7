"""A worker process and the pipe to it: both ends."""

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

_PATIENCE = 5.0
"""Seconds that workers have to close their envs before they are killed."""
_LOOK = 0.2
"""Seconds between looks at whether a worker that says nothing is still there: what its envs started may keep its end of
the pipe open."""
_STUCK = 30
"""Seconds after which a worker that stopped in the middle of a message counts as silent."""
_PROGRAM = (
    "import sys; from importlib import import_module; target, pipe, memory, *sys.path = sys.argv[1:]; "
    "getattr(import_module(target), 'main')(int(pipe), int(memory))"
)


class WorkerProcess:
    """One process that runs `main(pipe, memory)` of the module `target`, and the pipe to it."""

    def __init__(self, target: str, memory: int, number: int = 0, rows: slice = slice(0)) -> None:
        self.number, self.rows = number, rows
        self.ready = False
        """True once its envs are there."""
        self.steps = 0
        """Times it was told to step."""
        self.began = self.asked = time.monotonic()
        """When it was started, and when it was last asked for something."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
                ours.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", _STUCK, 0))
            # A group of its own: Ctrl-C in a terminal reaches the whole group of the parent.
            self.process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, target, str(theirs.fileno()), str(memory), *sys.path],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), memory),
                process_group=0,
            )
            self.connection = Connection(ours.detach())
        self._pipe = self.connection.fileno()
        self._poll = select.poll()
        self._poll.register(self._pipe, select.POLLIN)
        self._request = 0

    def ask(self, command: str, arguments: tuple[Any, ...] = ()) -> None:
        self._request = (self._request + 1) % 256
        self.asked = time.monotonic()
        if command == "step":  # two bytes; what to do is on the board
            self.steps += 1
            os.write(self._pipe, bytes((STEP, self._request)))
            return
        os.write(self._pipe, bytes((COMMAND, self._request)))
        self.connection.send((command, arguments))

    def hear(self, limit: float) -> Any:
        """The answer to the last request; an older one, which Ctrl-C left unheard, is dropped."""
        while True:
            if not self.speaks(self.asked + limit):
                raise TimeoutError
            kind, number = read_head(self._pipe)
            answer = self.connection.recv() if kind == MESSAGE else None
            if number == self._request:
                return answer

    def speaks(self, until: float) -> bool:
        """True as soon as there is something to read, False if there is not by `until`. EOFError if it is gone."""
        while True:
            left = until - time.monotonic()
            if self._poll.poll(max(0.0, min(left, _LOOK)) * 1000):
                return True
            if self.process.poll() is not None and not self._poll.poll(0):
                raise EOFError
            if left <= 0:
                return False

    def end(self, *, silent: bool) -> str | None:
        """End it and what its envs started, whatever they do. Says how it ended by itself; None if it had to be killed."""
        code = self._exit_code(0.0 if silent else 1.0)
        # SIGKILL ends a stopped process, too. The group is its own; it is gone if there is nobody left in it.
        with suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        if code is None:
            self.process.kill()
            # Until it has ended it could write to the board; one that hangs in the kernel and does not end cannot.
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
"""First byte of what goes over the pipe; the second numbers the request. After COMMAND and MESSAGE an object follows."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception on its way to the parent."""

    error: SurefootError
    trace: str | None
    """Where it came from; None if it was in this process, where the error knows it itself."""


class Served(Protocol):
    """Whatever a worker process serves: its public methods are the commands that a parent may give."""

    def step(self) -> None:
        """The one command that comes without arguments and is answered without a message."""
        ...

    def close(self) -> None:
        """Called when the parent is gone."""
        ...


def serve(pipe: int, memory: int, share: Served) -> None:
    """Serve until the parent hangs up, which it also does by dying."""
    # Ctrl-C and a stop from outside are the parent's to answer: it may want to finish the update that runs.
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    for file in (pipe, memory):  # what an env starts must not hold them: nobody would hear that this process is gone
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
            answer = getattr(share, name)(*arguments)
        except (EOFError, ConnectionError):
            raise
        except Exception as error:
            if not isinstance(error, SurefootError) or type(error).__module__ != "surefoot.errors":
                error = EnvError(f"a worker failed: {error!r}")  # the parent may not be able to import its class
            answer = Failure(error, traceback.format_exc())
        os.write(pipe, bytes((MESSAGE, number)))
        connection.send(answer)


def read_head(pipe: int) -> bytes:
    """The two bytes that begin everything; EOFError where the other side is gone."""
    head = os.read(pipe, 2)
    if len(head) == 1:
        head += os.read(pipe, 1)
    if len(head) < 2:
        raise EOFError
    return head


class WorkerTraceback(Exception):
    """Where in a worker an error came from; the cause of the error that its world raises."""


def raise_failure(answer: Any) -> None:
    """Raise what a worker's answer says went wrong, if it does."""
    if isinstance(answer, Failure):
        if answer.trace is None:
            raise answer.error
        raise answer.error from WorkerTraceback(answer.trace)


def dismiss(workers: Sequence[WorkerProcess]) -> None:
    """Hang up, which tells the workers to end; wait for them, and kill those that do not."""
    for worker in workers:
        worker.connection.close()
    until = time.monotonic() + _PATIENCE
    for worker in workers:
        try:
            worker.process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            worker.process.kill()
            worker.process.wait()
