"""`EnvWorkers`: this process and worker processes step the envs of a world; workers that die or hang are replaced."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing.reduction import ForkingPickler
from typing import TYPE_CHECKING, Any, Literal, Protocol

from surefoot.envs.gym.single_envs import SingleEnv
from surefoot.envs.workers.shared_memory import new_memory
from surefoot.envs.workers.worker import Share
from surefoot.envs.workers.worker_pool import SLOWER, WorkerPool
from surefoot.envs.workers.worker_process import Failure, WorkerProcess, WorkerTraceback, dismiss, raise_failure
from surefoot.errors import ConfigError, SurefootError

if TYPE_CHECKING:
    from surefoot.envs.workers.process_world import ProcessWorld

Timeout = float | Literal["auto"]
"""Seconds that a worker may take for a response."""

TARGET = "surefoot.envs.workers.worker"
# Seconds for a response with timeout "auto", more if the envs of this process are slow too. Much longer than any pause of
# a busy machine, short enough that a hanging env does not stop a run.
TIMEOUT = 30.0
# Seconds for a new process to import its packages, build its envs and reset them: torch alone may take ten.
START = 60.0
# Seconds for which a step waits for a new worker, so that most losses cost one step; after that the others continue.
GRACE = 0.5
# A loss is early before this many steps, or before this many seconds after the envs were built. Several early losses in a
# row mean that the env itself is broken.
EARLY_STEPS, EARLY_SECONDS = 100, 5.0


class EnvStepper(Protocol):
    """This process or a worker: steps a share of the envs."""

    number: int
    rows: slice
    """Its streams."""

    def ask(self, command: str, arguments: tuple[Any, ...] = ()) -> None:
        """Start a command of `Share`."""
        ...

    def receive(self, limit: float) -> Any:
        """Return the response to the last command; a `Failure` if it failed.

        Raise EOFError or OSError if the process has ended, TimeoutError after `limit` seconds without a response.
        """
        ...


class LocalShare:
    """The share of this process; a command runs in `receive`, while the workers run theirs."""

    def __init__(self, rows: slice, memory: int) -> None:
        self.number, self.rows = 0, rows
        self.slowest: dict[str, float] = {"build": 0.0, "other": 0.0}
        """Seconds of the slowest "build", and of the slowest other command."""
        self._share = Share(memory)
        self._command: tuple[str, tuple[Any, ...]] = ("", ())

    def ask(self, command: str, arguments: tuple[Any, ...] = ()) -> None:
        self._command = command, arguments

    def receive(self, limit: float = 0.0) -> Any:
        command, arguments = self._command
        began = time.monotonic()
        try:
            response = getattr(self._share, command)(*arguments)
        except SurefootError as error:
            response = Failure(error, None)
        kind = "build" if command == "build" else "other"
        self.slowest[kind] = max(self.slowest[kind], time.monotonic() - began)
        return response

    def close(self) -> None:
        self._share.close()


class EnvWorkers:
    """This process, the workers of a world, and the memory that they share."""

    def __init__(self, shares: Sequence[slice], world: ProcessWorld) -> None:
        self.timeout: Timeout = "auto"
        self.away: dict[int, float] = {}
        """{worker: when it was lost}, until its new envs are in a view. Until then its rows of the board are undefined."""
        self.memory = new_memory()
        self.local = LocalShare(shares[0], self.memory)
        self._shares, self._world = shares, world

        def end(workers: Sequence[WorkerProcess]) -> None:
            dismiss(workers)
            os.close(self.memory)

        # Workers start without a number, so that a spare one can replace any; `_assign` sets it.
        self.pool = WorkerPool(
            len(shares) - 1,
            lambda: WorkerProcess(TARGET, self.memory),
            end,
            lambda worker: worker.process.poll() is None,
        )
        self.steppers: list[EnvStepper] = [self.local]
        for number in range(1, len(shares)):
            self.steppers.append(self._assign(self.pool.workers[number - 1], number))

    @property
    def workers(self) -> list[WorkerProcess]:
        return self.pool.workers

    def ask(self, arguments: Mapping[EnvStepper, tuple[Any, ...]], command: str) -> dict[int, Any]:
        """Run a command and return {number: response}; a missing worker was lost and is being replaced.

        If some fail, all responses are read and the error of the first env is raised.
        """
        pending: list[EnvStepper] = []
        for stepper, values in arguments.items():
            try:
                stepper.ask(command, values)
                pending.append(stepper)
            except OSError as why:
                self._lose(stepper, why, command)
        responses: dict[int, Any] = {}
        for stepper in pending:
            try:
                responses[stepper.number] = stepper.receive(self._limit(command))
            except (EOFError, OSError) as why:
                self._lose(stepper, why, command)
        for response in responses.values():
            raise_failure(response)
        return responses

    def ask_all(self, arguments: Mapping[int, tuple[Any, ...]], command: str) -> list[Any]:
        """Return the responses of all processes in order; a worker that is lost meanwhile is replaced and asked again."""
        responses: dict[int, Any] = {}
        while missing := [number for number in arguments if number not in responses]:
            self.wait_for_all()
            responses |= self.ask({self.steppers[number]: arguments[number] for number in missing}, command)
        return [responses[number] for number in arguments]

    def look(self) -> None:
        """Replace workers whose process has ended, without a command to them."""
        for worker in list(self.workers):
            if worker.ready and worker.process.poll() is not None:
                self._lose(worker, EOFError(), "state")

    def wait_for_all(self) -> None:
        """Wait until every lost worker is replaced."""
        for worker in list(self.workers):
            self.is_back(worker.number, until=float("inf"))

    def is_back(self, number: int, until: float | None = None) -> bool:
        """Return whether a worker's envs are built; wait for them `until` then, by default for `GRACE` after its loss."""
        if until is None:
            until = self.away[number] + GRACE
        while not (worker := self.workers[number - 1]).ready:
            late = worker.sent_at + self._limit("join")
            try:
                if not worker.has_answer(min(until, late)) and time.monotonic() < late:
                    return False
                response = worker.receive(self._limit("join"))
            except (EOFError, OSError) as why:
                self._lose(worker, why, "join")
                continue
            if isinstance(response, Failure):
                why = f"{self._described(worker)}, was lost and could not be replaced: {response.error}"
                self.pool.give_up(why, WorkerTraceback(response.trace or ""))
            worker.ready, worker.began = True, time.monotonic()
            self.pool.prepare_spare()
        return True

    def _assign(self, worker: WorkerProcess, number: int) -> WorkerProcess:
        worker.number, worker.rows = number, self._shares[number]
        return worker

    def _limit(self, command: str) -> float:
        """Return the seconds for a response to a command."""
        if command in ("build", "join"):
            return max(START, SLOWER * self.local.slowest["build"])
        if self.timeout == "auto":
            return max(TIMEOUT, SLOWER * self.local.slowest["other"])
        return self.timeout

    def _lose(self, stepper: EnvStepper, error: Exception, command: str) -> None:
        """Discard a worker and its last response, and start another one unless the pool gives up."""
        assert isinstance(stepper, WorkerProcess), "this process cannot be lost"
        silent = isinstance(error, TimeoutError | BlockingIOError)
        why = stepper.end(silent=silent) or f"gave no answer in {self._limit(command):.3g} s"
        what = f"{self._described(stepper)}, {why} {self._world.moment()}"
        if not stepper.ready and stepper.number not in self.away:
            why = f"{what}, while its envs were built; set workers=0 to see the error in one process"
            self.pool.give_up(why, error)
        early = not stepper.ready or stepper.steps <= EARLY_STEPS or stepper.sent_at - stepper.began < EARLY_SECONDS
        stepper.ready = False
        self.away.setdefault(stepper.number, time.monotonic())
        number = stepper.number
        limit = (
            f" within {EARLY_STEPS} steps or {EARLY_SECONDS:g} s of its start, so it is not replaced again. "
            "Set workers=0 to see the error in one process, or resume the run"
        )
        consequence = "a new one begins new episodes"
        self.pool.lose(number - 1, what, consequence=consequence, limit=limit, error=error, early=early)
        new = self._assign(self.pool.replace(number - 1), number)
        self.steppers[number] = new
        with suppress(OSError):  # it has ended already; the next `receive` raises
            new.ask("join", self._world.place_of(new))

    def _described(self, worker: EnvStepper) -> str:
        first, last = worker.rows.start, worker.rows.stop - 1
        envs = f"env {last}" if first == last else f"envs {first} to {last}"
        return f"worker {worker.number} of {self._world.name}, with {envs}"


def shares(streams: int, count: int) -> list[slice]:
    """Return the streams of each process. Sizes differ by at most one; the first, which also wakes the others, is smallest."""
    ends = [streams * number // count for number in range(count + 1)]
    return [slice(first, end) for first, end in itertools.pairwise(ends)]


def require_sendable(env_fns: Sequence[Callable[[], SingleEnv]]) -> None:
    """Raise `ConfigError` for a function that cannot be sent to a worker process."""
    try:
        pickled = bytes(ForkingPickler.dumps(list(env_fns)))
    except Exception as why:
        raise ConfigError(
            f"the function that builds the env cannot be sent to a worker process ({why}); use an id or a function at the "
            "top of a module, or workers=0"
        ) from why
    if b"__main__" in pickled:
        raise ConfigError(
            "the function that builds the env is defined in the script that runs, from which a worker process cannot import "
            "it; move it to another module and import it, or use workers=0"
        )
