"""Workers that die or hang are replaced while the others go on; one that cannot be kept alive ends it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

from surefoot.envs.workers.env_workers import EnvStepper, EnvWorkers
from surefoot.envs.workers.worker_pool import SLOWER
from surefoot.envs.workers.worker_process import Failure, WorkerProcess, WorkerTraceback, raise_failure

if TYPE_CHECKING:
    from surefoot.envs.workers.process_world import ProcessWorld

Timeout = float | Literal["auto"]
"""Seconds that a worker may take for an answer."""

TIMEOUT = 30.0
"""Seconds for an answer where "auto" decides, unless this process's own share is slow too."""
START = 60.0
"""Seconds that a new process has to import what it needs, build its envs and reset them."""
GRACE = 0.5
"""Seconds for which a step waits for a new worker, so that most losses cost one step; after that the others go on."""
EARLY_STEPS, EARLY_SECONDS = 100, 5.0
"""An end is early before this many steps, and before this many seconds after the envs were built."""


class Supervisor:
    """Asks those who step a world's envs, hears them, and replaces workers that do not answer."""

    def __init__(self, crew: EnvWorkers, world: ProcessWorld) -> None:
        self.timeout: Timeout = "auto"
        self.away: dict[int, float] = {}
        """{worker: when it was lost}, until its new envs are shown. Their rows of the board mean nothing before."""
        self._crew, self._world = crew, world

    def ask(self, arguments: Mapping[EnvStepper, tuple[Any, ...]], command: str) -> dict[int, Any]:
        """{hand: what it answered}; who is not among them was lost, and is being replaced.

        If some failed, all are heard and the error of the first env is raised.
        """
        asked: list[EnvStepper] = []
        for hand, own in arguments.items():
            try:
                hand.ask(command, own)
                asked.append(hand)
            except OSError as why:
                self._lose(hand, why, command)
        answers: dict[int, Any] = {}
        for hand in asked:
            try:
                answers[hand.number] = hand.hear(self._limit(command))
            except (EOFError, OSError) as why:
                self._lose(hand, why, command)
        for answer in answers.values():
            raise_failure(answer)
        return answers

    def ask_all(self, arguments: Mapping[int, tuple[Any, ...]], command: str) -> list[Any]:
        """The answers of all hands, in their order. A worker that is lost on the way is replaced and asked again."""
        answers: dict[int, Any] = {}
        while missing := [number for number in arguments if number not in answers]:
            self.wait_for_all()
            answers |= self.ask({self._crew.steppers[number]: arguments[number] for number in missing}, command)
        return [answers[number] for number in arguments]

    def look(self) -> None:
        """Find out whether somebody is gone, without asking them."""
        for worker in list(self._crew.workers):
            if worker.ready and worker.process.poll() is not None:
                self._lose(worker, EOFError(), "state")

    def wait_for_all(self) -> None:
        """Until every worker that was lost is replaced."""
        for worker in list(self._crew.workers):
            self.is_back(worker.number, until=float("inf"))

    def is_back(self, number: int, until: float | None = None) -> bool:
        """True if a worker's envs are there; waits for them `until` then, or for the grace of one that was just lost."""
        if until is None:
            until = self.away[number] + GRACE
        while not (worker := self._crew.workers[number - 1]).ready:
            late = worker.asked + self._limit("join")
            try:
                if not worker.speaks(min(until, late)) and time.monotonic() < late:
                    return False
                answer = worker.hear(self._limit("join"))
            except (EOFError, OSError) as why:
                self._lose(worker, why, "join")
                continue
            if isinstance(answer, Failure):
                why = f"{self._its(worker)}, was lost and could not be replaced: {answer.error}"
                self._crew.pool.give_up(why, WorkerTraceback(answer.trace or ""))
            worker.ready, worker.began = True, time.monotonic()
            self._crew.pool.prepare_spare()
        return True

    def _limit(self, command: str) -> float:
        """Seconds for an answer to a command."""
        if command in ("build", "join"):
            return max(START, SLOWER * self._crew.here.slowest["build"])
        if self.timeout == "auto":
            return max(TIMEOUT, SLOWER * self._crew.here.slowest["other"])
        return self.timeout

    def _lose(self, hand: EnvStepper, error: Exception, command: str) -> None:
        """Nothing of a worker's last answer counts. Another one is started in its place, unless that is no use."""
        assert isinstance(hand, WorkerProcess), "this process does not lose itself"
        silent = isinstance(error, TimeoutError | BlockingIOError)
        why = hand.end(silent=silent) or f"gave no answer in {self._limit(command):.3g} s"
        what = f"{self._its(hand)}, {why} {self._world.moment()}"
        if not hand.ready and hand.number not in self.away:
            why = f"{what}, while its envs were built; set workers=0 to see in one process what happens"
            self._crew.pool.give_up(why, error)
        early = not hand.ready or hand.steps <= EARLY_STEPS or hand.asked - hand.began < EARLY_SECONDS
        hand.ready = False
        self.away.setdefault(hand.number, time.monotonic())
        pool, number = self._crew.pool, hand.number - 1
        limit = (
            f" within {EARLY_STEPS} steps or {EARLY_SECONDS:g} s of its start, so it is not replaced again. "
            "Set workers=0 to see in one process what happens, or resume the run"
        )
        pool.lose(number, what, consequence="a new one begins new episodes", limit=limit, error=error, early=early)
        new = self._crew.replace(hand)
        with suppress(OSError):  # it ended at once; whoever listens to it will notice
            new.ask("join", self._world.place_of(new))

    def _its(self, worker: EnvStepper) -> str:
        first, last = worker.rows.start, worker.rows.stop - 1
        envs = f"env {last}" if first == last else f"envs {first} to {last}"
        return f"worker {worker.number} of {self._world.name}, with {envs}"
