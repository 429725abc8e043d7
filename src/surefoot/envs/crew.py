"""Who steps a world's envs: this process, workers that were started for it, and the memory between them."""

from __future__ import annotations

import itertools
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any, Protocol

from surefoot.envs.board import new_memory
from surefoot.envs.worker import COMMAND, MESSAGE, STEP, Failure, Share, read_head
from surefoot.errors import SurefootError

_PATIENCE = 5.0
"""Seconds that workers have to close their envs before they are killed."""
_PROGRAM = (
    "import sys; pipe, memory, *sys.path = sys.argv[1:]; "
    "from surefoot.envs.worker import main; main(int(pipe), int(memory))"
)


class Hand(Protocol):
    """Whoever steps a share of the envs."""

    number: int
    rows: slice
    """Its streams."""

    def ask(self, command: str, arguments: tuple[Any, ...] = ()) -> None:
        """Begin with something that `Share` can do."""
        ...

    def hear(self) -> Any:
        """What came of it; a `Failure` if it failed. OSError or EOFError if nobody is there."""
        ...

    def ended(self) -> str:
        """How it came to its end."""
        ...


class Here:
    """The share of this process: what it is asked is done when the answer is wanted, while the workers are at theirs."""

    def __init__(self, rows: slice, memory: int) -> None:
        self.number, self.rows = 0, rows
        self._share = Share(memory)
        self._asked: tuple[str, tuple[Any, ...]] = ("", ())

    def ask(self, command: str, arguments: tuple[Any, ...] = ()) -> None:
        self._asked = command, arguments

    def hear(self) -> Any:
        command, arguments = self._asked
        try:
            return getattr(self._share, command)(*arguments)
        except SurefootError as error:
            return Failure(error, None)

    def ended(self) -> str:
        return "is this process, which goes on"

    def close(self) -> None:
        self._share.close()


class Worker:
    """One process and the way to it."""

    def __init__(self, number: int, rows: slice, memory: int) -> None:
        self.number, self.rows = number, rows
        ours, theirs = socket.socketpair()
        with ours, theirs:
            # A group of its own: Ctrl-C in a terminal reaches the whole group of the parent.
            self.process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, str(theirs.fileno()), str(memory), *sys.path],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), memory),
                process_group=0,
            )
            self.connection = Connection(ours.detach())
        self._pipe = self.connection.fileno()
        self._asked = 0

    def ask(self, command: str, arguments: tuple[Any, ...] = ()) -> None:
        self._asked = (self._asked + 1) % 256
        if command == "step":  # two bytes; what to do is on the board
            os.write(self._pipe, bytes((STEP, self._asked)))
            return
        os.write(self._pipe, bytes((COMMAND, self._asked)))
        self.connection.send((command, arguments))

    def hear(self) -> Any:
        """The answer to the last request; an older one, which Ctrl-C left unheard, is dropped."""
        while True:
            kind, number = read_head(self._pipe)
            answer = self.connection.recv() if kind == MESSAGE else None
            if number == self._asked:
                return answer

    def ended(self) -> str:
        try:
            code = self.process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            return "no longer answered"
        if code >= 0:
            return f"ended with exit code {code}"
        return f"was ended by {signal.Signals(-code).name}"


class Crew:
    """Everyone who steps for a world and the memory they share; outlives the world for as long as it takes to end them."""

    def __init__(self, shares: Sequence[slice]) -> None:
        self.memory = new_memory()
        self.here = Here(shares[0], self.memory)
        self._owner = os.getpid()
        self.workers: list[Worker] = []
        try:
            for number, rows in enumerate(shares[1:], start=1):
                self.workers.append(Worker(number, rows, self.memory))
        except BaseException:
            self.dismiss()
            raise
        self.hands: list[Hand] = [self.here, *self.workers]

    def dismiss(self) -> None:
        """Hang up, which tells the workers to go; wait for them, and kill those that stay."""
        if os.getpid() != self._owner:  # a fork of the parent ends: the workers are not its own
            return
        for worker in self.workers:
            worker.connection.close()
        os.close(self.memory)
        until = time.monotonic() + _PATIENCE
        for worker in self.workers:
            try:
                worker.process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()


def shares(streams: int, count: int) -> list[slice]:
    """The streams of each process; the sizes differ by one at most, and the first, who also wakes the others, has least."""
    ends = [streams * number // count for number in range(count + 1)]
    return [slice(first, end) for first, end in itertools.pairwise(ends)]
