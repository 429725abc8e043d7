"""A check that a rollout backend keeps its contract: for custom backends, and for the ones of this package."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from surefoot.scale.backend import Piece, RolloutBackend, Weights, shares
from surefoot.train.spec import RunSpec

# Seconds until an ended worker must be gone: a cluster ends its workers asynchronously.
PATIENCE = 10.0


class Killable(RolloutBackend, Protocol):
    """A backend whose workers are processes of this machine, so that they can be killed."""

    @property
    def processes(self) -> list[int]:
        """Process ids, by worker."""
        ...


@dataclass(frozen=True, slots=True)
class ContractViolation:
    """A part of the contract that a backend does not keep."""

    promise: str
    observed: str

    def __str__(self) -> str:
        return f"{self.promise}: {self.observed}"


def check_backend(
    make: Callable[[], Killable], spec: RunSpec, weights: Weights, *, kills: int = 1, stops: int = 1
) -> list[ContractViolation]:
    """Return the violations of the contract; an empty list is a pass.

    Args:
        make: Opens a new backend, with a timeout of a few seconds.
        spec: The run that the backend collects for.
        weights: Weights of a policy of `spec`.
        kills: How often a worker is killed (SIGKILL); it must be replaced.
        stops: How often a worker is stopped (SIGSTOP); it must be replaced.
    """
    violations: list[ContractViolation] = []
    first = _Session(make(), spec, weights, violations)
    try:
        pieces = first.collect_round("each worker returns one piece of its share")
        states = first.backend.states()
        ahead = first.collect_round("each worker returns one piece of its share")
        for _ in range(kills):
            first.signal_worker(signal.SIGKILL)
        for _ in range(stops):
            first.signal_worker(signal.SIGSTOP)
    finally:
        processes = first.backend.processes
        first.backend.close()
        first.backend.close()
    if alive := _running(processes):
        violations.append(ContractViolation("close ends every worker", f"{alive} still run"))
    second = _Session(make(), spec, weights, violations)
    try:
        again = second.collect_round("a second backend returns pieces too")
        second.require_equal(pieces, again, "the same seed and weights give the same digits")
        second.backend.set_states(states)
        second.serials.clear()  # the next piece is the one that followed the state, and has its serial
        second.require_equal(
            ahead, second.collect_round("it continues from a state"), "from a state it continues to the last digit"
        )
    finally:
        second.backend.close()
    return violations


class _Session:
    """One backend under test, with increasing policy versions."""

    def __init__(self, backend: Killable, spec: RunSpec, weights: Weights, violations: list[ContractViolation]) -> None:
        self.backend, self.spec, self.weights, self.violations = backend, spec, weights, violations
        self.version = 6
        self.serials: set[str] = set()

    def report(self, promise: str, observed: str) -> None:
        self.violations.append(ContractViolation(promise, observed))

    def collect_round(self, promise: str, between: Callable[[], None] = lambda: None) -> list[Piece]:
        self.version += 1
        self.backend.publish(self.weights, self.version)
        self.backend.ask()
        between()
        pieces = self.backend.receive()
        expected = [(k, self.version, n) for k, n in enumerate(shares(self.spec.ppo.envs, self.backend.workers))]
        actual = [(piece.worker, piece.version, piece.rollout.reward.shape[1]) for piece in pieces]
        if actual != expected:
            self.report(promise, f"(worker, version, streams) are {actual}, not {expected}")
        serials = [piece.serial for piece in pieces]
        if len(set(serials)) < len(serials) or self.serials & set(serials):
            self.report("every piece has a unique serial", f"{serials} are repeated")
        self.serials |= set(serials)
        if any((piece.rollout.policy_version != self.version).any() for piece in pieces):
            self.report("every step is tagged with the policy that acted", "there is another version")
        return pieces

    def signal_worker(self, how: signal.Signals) -> None:
        """Send a signal to the first worker while a piece is pending; all pieces must come, and the loss be reported."""
        process = self.backend.processes[0]
        self.backend.take_losses()
        pieces = self.collect_round(
            f"after {how.name} each worker still returns one piece", lambda: os.kill(process, how)
        )
        losses = self.backend.take_losses()
        # The piece may have been finished before the signal: then the loss shows with the next one.
        if not losses:
            pieces = self.collect_round(f"after {how.name} each worker still returns one piece")
            losses = self.backend.take_losses()
        if len(losses) != 1:
            self.report(f"a worker lost by {how.name} is reported once", f"{losses}")
        if [piece.began_anew for piece in pieces] != [k == 0 for k in range(len(pieces))]:
            self.report("only the new worker begins new episodes", f"{[p.began_anew for p in pieces]}")
        if _running([process]):
            self.report("a worker that is replaced has ended", f"process {process} still runs")
        self.collect_round("it continues after a loss")

    def require_equal(self, one: list[Piece], other: list[Piece], promise: str) -> None:
        for a, b in zip(one, other, strict=True):
            if not all(np.array_equal(getattr(a.rollout, n), getattr(b.rollout, n)) for n in ("reward", "log_prob")):
                self.report(promise, f"worker {a.worker} returned another rollout")


def _running(processes: list[int]) -> list[int]:
    """Return the processes that still run after `PATIENCE`; zombies do not count."""

    def runs(process: int) -> bool:
        try:
            with open(f"/proc/{process}/stat") as file:
                return file.read().rpartition(")")[2].split()[0] not in "ZX"
        except OSError:
            return False

    until = time.monotonic() + PATIENCE
    while (alive := [process for process in processes if runs(process)]) and time.monotonic() < until:
        time.sleep(0.05)
    return alive
