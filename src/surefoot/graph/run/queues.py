"""The engine across processes: environments in processes of their own, one bounded queue from a node to each process.

Every node fires as often as in one process and reads the same values, whatever the timing is: a Kahn network.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from surefoot.errors import FiringError, GraphError
from surefoot.graph.run.digits import learned, parameters_sha256
from surefoot.graph.run.interpreter import close_all
from surefoot.graph.run.tick import Machine
from surefoot.graph.schedule import Schedule, Setting, build, islands, schedule
from surefoot.graph.spec.checked import Checked
from surefoot.graph.spec.model import End, Graph
from surefoot.graph.spec.text import canonical, parse_graph

CAPACITY = 2
"""Messages that may wait: the balance of a loop with one delay needs no more."""
PATIENCE = 1.0


@dataclass(slots=True)
class Channel:
    """What one node says to one process, a tuple a tick; `free` counts the places that are left."""

    source: str
    ends: tuple[End, ...]
    target: int
    early: bool
    """Read in the tick itself; else a tick later."""
    receiver: Connection
    sender: Connection
    free: Any


def channels(plan: Schedule, groups: list[list[str]], context: Any) -> dict[tuple[str, int], Channel]:
    """Which node speaks to which process, of what."""
    home = {id: number for number, ids in enumerate(groups) for id in ids}
    needed: dict[tuple[str, int], dict[End, bool]] = {}
    for firing in plan.firings:
        for each in firing.inputs:
            if each.source is None or each.edge is None or home[each.source.node] == home[firing.id]:
                continue
            ends = needed.setdefault((each.source.node, home[firing.id]), {})
            ends[each.source] = ends.get(each.source, False) or each.edge.delay is None
    made: dict[tuple[str, int], Channel] = {}
    for (source, target), ends in needed.items():
        receiver, sender = context.Pipe(duplex=False)
        free = context.BoundedSemaphore(CAPACITY)
        made[source, target] = Channel(source, tuple(sorted(ends)), target, any(ends.values()), receiver, sender, free)
    return made


class _Island:
    """The nodes of one process and the queues at its shores."""

    def __init__(
        self,
        plan: Schedule,
        groups: list[list[str]],
        number: int,
        routes: dict[tuple[str, int], Channel],
        setting: Setting,
    ) -> None:
        mine = set(groups[number])
        self.nodes = build(plan, mine, setting)
        self.machine = Machine(plan, self.nodes, mine)
        self.out = {id: [c for (source, _), c in routes.items() if source == id] for id in mine}
        incoming = [c for (_, target), c in routes.items() if target == number]
        self.late = [c for c in incoming if not c.early]
        self.before: dict[str, list[Channel]] = {id: [] for id in mine}
        for channel in incoming:
            if channel.early:
                self.before[self._first_reader(plan, channel, mine)].append(channel)

    @staticmethod
    def _first_reader(plan: Schedule, channel: Channel, mine: set[str]) -> str:
        return next(
            firing.id
            for firing in plan.firings
            if firing.id in mine
            and any(e.source in channel.ends and e.edge is not None and e.edge.delay is None for e in firing.inputs)
        )

    def run(self, ticks: int, alive: Any) -> None:
        machine = self.machine
        for _ in range(ticks):
            machine.begin()
            for index, firing in enumerate(machine.firings):
                for channel in self.before[firing.id]:
                    self._receive(channel, alive)
                machine.fire(index)
                machine.hold(firing.id)
                for channel in self.out[firing.id]:
                    self._send(channel, alive)
            for channel in self.late:
                self._receive(channel, alive)
            machine.end()

    def _send(self, channel: Channel, alive: Any) -> None:
        while not channel.free.acquire(timeout=PATIENCE):
            alive()
        channel.sender.send(tuple(self.machine.values[self.machine.slots[end]] for end in channel.ends))

    def _receive(self, channel: Channel, alive: Any) -> None:
        while not channel.receiver.poll(PATIENCE):
            alive()
        said = channel.receiver.recv()
        channel.free.release()
        for end, value in zip(channel.ends, said, strict=True):
            self.machine.values[self.machine.slots[end]] = value
        self.machine.hold(channel.source)


class _Remote:
    """A node of another process, as far as it can be seen from here."""

    def __init__(self, weights: dict[str, Any]) -> None:
        self.weights = weights

    def state_dict(self) -> dict[str, Any]:
        return self.weights


class QueueEngine:
    """Runs a graph with its environments in processes of their own."""

    def __init__(self, graph: Graph | Checked, *, into: Path | str = ".", trust: bool = False, **run: Any) -> None:
        self.plan = schedule(graph, **run)
        self.groups = islands(self.plan)
        self.setting = Setting(Path(into), trust)
        self.nodes: dict[str, Any] = {}

    @property
    def processes(self) -> int:
        """How many work."""
        return len(self.groups)

    def run(self, ticks: int | None = None) -> int:
        """All of the run, or its first ticks; returns how many."""
        ticks = self.plan.ticks if ticks is None else min(ticks, self.plan.ticks)
        context = multiprocessing.get_context("fork" if os.name == "posix" else "spawn")
        routes = channels(self.plan, self.groups, context)
        ends = [context.Pipe(duplex=False) for _ in self.groups[1:]]
        workers = [
            context.Process(
                target=_work, args=(self._letter(), number, routes, ticks, ends[number - 1][1]), daemon=True
            )
            for number in range(1, len(self.groups))
        ]
        for worker in workers:
            worker.start()

        def alive() -> None:
            for (receiver, _), worker in zip(ends, workers, strict=True):
                if receiver.poll():
                    _take(receiver)
                if not worker.is_alive() and not receiver.poll():
                    raise GraphError(f"a process of the graph ended with exit code {worker.exitcode}")

        try:
            island = _Island(self.plan, self.groups, 0, routes, self.setting)
            self.nodes = dict(island.nodes)
            island.run(ticks, alive)
            for receiver, _ in ends:
                while not receiver.poll(PATIENCE):
                    alive()
                self.nodes |= {id: _Remote(weights) for id, weights in _take(receiver).items()}
        finally:
            for worker in workers:
                worker.join(timeout=5.0)
                if worker.is_alive():
                    worker.terminate()
        return ticks

    def _letter(self) -> tuple[str, dict[str, Any], str, bool]:
        run = self.plan.run
        settings = {"seed": run.seed, "total_steps": run.total_steps, "path": run.path}
        return canonical(self.plan.checked.graph), settings, str(self.setting.into), self.setting.trust

    def sha256(self) -> str:
        """Of all that was learned, in whichever process."""
        return parameters_sha256(self.nodes)

    def close(self) -> None:
        """Free what nodes of this process hold."""
        close_all(self.nodes)


def _take(receiver: Connection) -> dict[str, Any]:
    kind, said = receiver.recv()
    if kind == "error":
        raise FiringError(said)
    return said


def _work(
    letter: tuple[str, dict[str, Any], str, bool],
    number: int,
    routes: dict[tuple[str, int], Channel],
    ticks: int,
    end: Connection,
) -> None:
    """What a process of an island does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    text, run, into, trust = letter
    parent = os.getppid()

    def alive() -> None:
        if os.getppid() != parent:
            raise SystemExit(1)

    try:
        plan = schedule(parse_graph(text), **run)
        island = _Island(plan, islands(plan), number, routes, Setting(Path(into), trust))
        island.run(ticks, alive)
        end.send(("learned", learned(island.nodes)))
        close_all(island.nodes)
    except Exception as why:
        end.send(("error", str(why)))
