"""Who steps a world's envs: this process, workers that were started for it, and the memory between them."""

from __future__ import annotations

import itertools
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from typing import Any, Protocol

from surefoot.envs.gym.single_envs import SingleEnv
from surefoot.envs.workers.shared_memory import new_memory
from surefoot.envs.workers.worker import COMMAND, MESSAGE, STEP, Failure, Share, read_head
from surefoot.errors import ConfigError, SurefootError

_PATIENCE = 5.0
"""Seconds that workers have to close their envs before they are killed."""
_LOOK = 0.2
"""Seconds between looks at whether a worker that says nothing is still there: what its envs started may keep its end of
the pipe open."""
_STUCK = 30
"""Seconds after which a worker that stopped in the middle of a message counts as silent."""
_PROGRAM = (
    "import sys; pipe, memory, *sys.path = sys.argv[1:]; "
    "from surefoot.envs.workers.worker import main; main(int(pipe), int(memory))"
)


class Hand(Protocol):
    """Whoever steps a share of the envs."""

    number: int
    rows: slice
    """Its streams."""

    def ask(self, command: str, arguments: tuple[Any, ...] = ()) -> None:
        """Begin with something that `Share` can do."""
        ...

    def hear(self, limit: float) -> Any:
        """What came of it; a `Failure` if it failed.

        EOFError or OSError if nobody is there; TimeoutError if nothing was said within `limit` seconds of the request.
        """
        ...


class Here:
    """The share of this process: what it is asked is done when the answer is wanted, while the workers are at theirs."""

    def __init__(self, rows: slice, memory: int) -> None:
        self.number, self.rows = 0, rows
        self.slowest: dict[str, float] = {"build": 0.0, "other": 0.0}
        """Seconds that the slowest answer took: to "build", and to anything else."""
        self._share = Share(memory)
        self._asked: tuple[str, tuple[Any, ...]] = ("", ())

    def ask(self, command: str, arguments: tuple[Any, ...] = ()) -> None:
        self._asked = command, arguments

    def hear(self, limit: float = 0.0) -> Any:
        command, arguments = self._asked
        began = time.monotonic()
        try:
            answer = getattr(self._share, command)(*arguments)
        except SurefootError as error:
            answer = Failure(error, None)
        took, kind = time.monotonic() - began, "build" if command == "build" else "other"
        if took > self.slowest[kind]:
            self.slowest[kind] = took
        return answer

    def close(self) -> None:
        self._share.close()


class Worker:
    """One process and the way to it."""

    def __init__(self, number: int, rows: slice, memory: int, program: str | None = None) -> None:
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
                [sys.executable, "-c", program or _PROGRAM, str(theirs.fileno()), str(memory), *sys.path],
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


class Crew:
    """Everyone who steps for a world and the memory they share; outlives the world for as long as it takes to end them."""

    def __init__(self, shares: Sequence[slice]) -> None:
        self.memory = new_memory()
        self.here = Here(shares[0], self.memory)
        self._owner = os.getpid()
        self.workers: list[Worker] = []
        self._spare: Worker | None = None
        try:
            for number, rows in enumerate(shares[1:], start=1):
                self.workers.append(Worker(number, rows, self.memory))
        except BaseException:
            self.dismiss()
            raise
        self.hands: list[Hand] = [self.here, *self.workers]

    def replace(self, worker: Worker) -> Worker:
        """A process without envs in the place of one that has ended: the spare one, or a new one."""
        new, self._spare = self._spare, None
        if new is None or new.process.poll() is not None:
            new = Worker(worker.number, worker.rows, self.memory)
        new.number, new.rows = worker.number, worker.rows
        self.workers[worker.number - 1] = self.hands[worker.number] = new
        return new

    def prepare_spare(self) -> None:
        """Start a process for the next loss: a new Python takes a second or two where cores are busy."""
        if self._spare is None:
            self._spare = Worker(0, slice(0), self.memory)

    def dismiss(self) -> None:
        """Hang up, which tells the workers to go; wait for them, and kill those that stay."""
        if os.getpid() != self._owner:  # a fork of the parent ends: the workers are not its own
            return
        workers = [*self.workers, *([self._spare] if self._spare is not None else [])]
        for worker in workers:
            worker.connection.close()
        os.close(self.memory)
        until = time.monotonic() + _PATIENCE
        for worker in workers:
            try:
                worker.process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()


def shares(streams: int, count: int) -> list[slice]:
    """The streams of each process; the sizes differ by one at most, and the first, who also wakes the others, has least."""
    ends = [streams * number // count for number in range(count + 1)]
    return [slice(first, end) for first, end in itertools.pairwise(ends)]


def require_sendable(env_fns: Sequence[Callable[[], SingleEnv]]) -> None:
    """ConfigError for a function that a worker process could not be sent."""
    try:
        sent = bytes(ForkingPickler.dumps(list(env_fns)))
    except Exception as why:
        raise ConfigError(
            f"what builds the env cannot be sent to a worker process ({why}); use an id or a function at the top of a "
            "module, or workers=0"
        ) from why
    if b"__main__" in sent:
        raise ConfigError(
            "what builds the env is defined in the script that runs, where a worker process cannot import it from; "
            "move it to a module of its own and import it, or use workers=0"
        )
