"""The contract of a rollout backend, checked on a live one: for those who write their own, and for ours."""

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

PATIENCE = 10.0
"""Seconds that an ended worker has to be gone."""


class Killable(RolloutBackend, Protocol):
    """A backend whose workers are processes of this machine, so that they can be killed."""

    @property
    def processes(self) -> list[int]:
        """Process ids, by worker."""
        ...


@dataclass(frozen=True, slots=True)
class Broken:
    """A promise that was not kept."""

    promise: str
    seen: str

    def __str__(self) -> str:
        return f"{self.promise}: {self.seen}"


def check_backend(
    make: Callable[[], Killable], spec: RunSpec, weights: Weights, *, kills: int = 1, stops: int = 1
) -> list[Broken]:
    """What a backend of `spec` does not keep of the contract; [] is what one wants.

    `make` opens the backend anew, with a time-out of a few seconds: workers are killed and stopped, and must be back.
    """
    found: list[Broken] = []
    first = _Session(make(), spec, weights, found)
    try:
        pieces = first.round("each worker gives one piece of its share")
        states = first.backend.states()
        ahead = first.round("each worker gives one piece of its share")
        for _ in range(kills):
            first.hurt(signal.SIGKILL)
        for _ in range(stops):
            first.hurt(signal.SIGSTOP)
    finally:
        gone = first.backend.processes
        first.backend.close()
        first.backend.close()
    if alive := _left(gone):
        found.append(Broken("close ends every worker", f"{alive} still run"))
    second = _Session(make(), spec, weights, found)
    try:
        again = second.round("a second backend gives pieces as well")
        second.same(pieces, again, "the same seed and weights give the same digits")
        second.backend.set_states(states)
        second.forget()  # the next piece is the one that followed the state, by its serial too
        second.same(ahead, second.round("it goes on from a state"), "from a state it goes on to the last digit")
    finally:
        second.backend.close()
    return found


class _Session:
    """One backend, with a version that grows."""

    def __init__(self, backend: Killable, spec: RunSpec, weights: Weights, found: list[Broken]) -> None:
        self.backend, self.spec, self.weights, self.found = backend, spec, weights, found
        self.version = 6
        self._serials: set[str] = set()

    def round(self, promise: str, between: Callable[[], None] = lambda: None) -> list[Piece]:
        self.version += 1
        self.backend.publish(self.weights, self.version)
        self.backend.ask()
        between()
        pieces = self.backend.hear()
        wanted = [(k, self.version, n) for k, n in enumerate(shares(self.spec.ppo.envs, self.backend.workers))]
        got = [(piece.worker, piece.version, piece.rollout.reward.shape[1]) for piece in pieces]
        if got != wanted:
            self.found.append(Broken(promise, f"(worker, version, streams) were {got}, not {wanted}"))
        serials = [piece.serial for piece in pieces]
        if len(set(serials)) < len(serials) or self._serials & set(serials):
            self.found.append(Broken("every piece has a serial of its own", f"{serials} were there before"))
        self._serials |= set(serials)
        if any((piece.rollout.policy_version != self.version).any() for piece in pieces):
            self.found.append(Broken("every step is tagged with the policy that acted", "another version was found"))
        return pieces

    def hurt(self, how: signal.Signals) -> None:
        """Do something to the first worker while a piece is under way; all pieces must come, told and new."""
        process = self.backend.processes[0]
        self.backend.take_losses()
        pieces = self.round(f"after {how.name} each worker still gives one piece", lambda: os.kill(process, how))
        told = self.backend.take_losses()
        # A piece may have been done before the blow: then the loss shows at the next one.
        if not told:
            pieces = self.round(f"after {how.name} each worker still gives one piece")
            told = self.backend.take_losses()
        if len(told) != 1:
            self.found.append(Broken(f"a worker lost by {how.name} is told once", f"{told}"))
        if [piece.began_anew for piece in pieces] != [k == 0 for k in range(len(pieces))]:
            self.found.append(Broken("only the new worker begins anew", f"{[p.began_anew for p in pieces]}"))
        if _left([process]):
            self.found.append(Broken("a worker that is replaced has ended", f"process {process} still runs"))
        self.round("after a loss it goes on")

    def forget(self) -> None:
        """Serials may come again: time was turned back."""
        self._serials.clear()

    def same(self, one: list[Piece], other: list[Piece], promise: str) -> None:
        for a, b in zip(one, other, strict=True):
            if not all(np.array_equal(getattr(a.rollout, n), getattr(b.rollout, n)) for n in ("reward", "log_prob")):
                self.found.append(Broken(promise, f"worker {a.worker} gave another rollout"))


def _left(processes: list[int]) -> list[int]:
    """Who of them still runs after a moment's patience: a cluster ends its workers in its own time."""
    until = time.monotonic() + PATIENCE
    while (alive := [process for process in processes if _runs(process)]) and time.monotonic() < until:
        time.sleep(0.05)
    return alive


def _runs(process: int) -> bool:
    """True if a process is there and is no zombie."""
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
