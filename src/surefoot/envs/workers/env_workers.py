"""Who steps a world's envs: this process, worker processes, and the memory between them."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Sequence
from multiprocessing.reduction import ForkingPickler
from typing import Any, Protocol

from surefoot.envs.gym.single_envs import SingleEnv
from surefoot.envs.workers.shared_memory import new_memory
from surefoot.envs.workers.worker import Share
from surefoot.envs.workers.worker_pool import WorkerPool
from surefoot.envs.workers.worker_process import Failure, WorkerProcess, dismiss
from surefoot.errors import ConfigError, SurefootError

TARGET = "surefoot.envs.workers.worker"


class EnvStepper(Protocol):
    """This process or a worker: steps a share of the envs."""

    number: int
    rows: slice
    """Its streams."""

    def ask(self, command: str, arguments: tuple[Any, ...] = ()) -> None:
        """Begin with something that `Share` can do."""
        ...

    def hear(self, limit: float) -> Any:
        """Return the answer to the last request; a `Failure` if it failed.

        EOFError or OSError if nobody is there; TimeoutError if nothing was said within `limit` seconds of the request.
        """
        ...


class LocalShare:
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


class EnvWorkers:
    """This process, the workers of a world, and the memory that they share."""

    def __init__(self, shares: Sequence[slice]) -> None:
        self.memory = new_memory()
        self.here = LocalShare(shares[0], self.memory)
        self._shares = shares
        # Workers are made without a place, so that a spare one can take any; `_place` gives it.
        self.pool = WorkerPool(
            len(shares) - 1,
            lambda: WorkerProcess(TARGET, self.memory),
            self._end,
            lambda worker: worker.process.poll() is None,
        )
        self.steppers: list[EnvStepper] = [self.here]
        for number in range(1, len(shares)):
            self.steppers.append(self._place(self.pool.workers[number - 1], number))

    @property
    def workers(self) -> list[WorkerProcess]:
        return self.pool.workers

    def replace(self, worker: WorkerProcess) -> WorkerProcess:
        """Return a process without envs in the place of one that has ended."""
        new = self._place(self.pool.replace(worker.number - 1), worker.number)
        self.steppers[worker.number] = new
        return new

    def _place(self, worker: WorkerProcess, number: int) -> WorkerProcess:
        worker.number, worker.rows = number, self._shares[number]
        return worker

    def _end(self, workers: Sequence[WorkerProcess]) -> None:
        dismiss(workers)
        os.close(self.memory)


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
