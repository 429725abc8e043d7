"""The engine across processes: environments run in their own processes, connected by one bounded queue per reader.

Every node fires as often as in one process and reads the same values, independent of timing: a Kahn process network.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from surefoot.errors import FiringError, GraphError
from surefoot.graph.run.digits import parameters_sha256, weights_of
from surefoot.graph.run.interpreter import close_all
from surefoot.graph.run.tick import Machine
from surefoot.graph.schedule import Schedule, Setting, build, process_groups, schedule
from surefoot.graph.spec.checked import Checked
from surefoot.graph.spec.model import End, Graph
from surefoot.graph.spec.text import canonical, parse_graph

# Messages that may wait in a queue: a loop with one delay never has more than two in flight.
CAPACITY = 2
# Seconds between two checks whether the process at the other end still lives. A shorter wait only costs CPU time.
PATIENCE = 1.0
Routes = dict[tuple[str, int], "Channel"]
"""{(node, process): the queue from the node to the process}"""


@dataclass(slots=True)
class Channel:
    """A queue from one node to one process: one tuple per tick. `free` counts the free places."""

    source: str
    ends: tuple[End, ...]
    early: bool
    """Read in the same tick; else at its end, for the next one."""
    receiver: Connection
    sender: Connection
    free: Any


def channels(plan: Schedule, groups: list[list[str]], context: Any) -> Routes:
    """Return the queues between the groups of nodes."""
    home = {id: number for number, ids in enumerate(groups) for id in ids}
    needed: dict[tuple[str, int], dict[End, bool]] = {}
    for firing in plan.firings:
        for each in firing.inputs:
            if each.source is None or each.edge is None or home[each.source.node] == home[firing.id]:
                continue
            ends = needed.setdefault((each.source.node, home[firing.id]), {})
            ends[each.source] = ends.get(each.source, False) or each.edge.delay is None
    routes: Routes = {}
    for (source, target), ends in needed.items():
        receiver, sender = context.Pipe(duplex=False)
        free = context.BoundedSemaphore(CAPACITY)
        routes[source, target] = Channel(source, tuple(sorted(ends)), any(ends.values()), receiver, sender, free)
    return routes


class _Island:
    """The nodes of one process and the queues into and out of it."""

    def __init__(self, plan: Schedule, groups: list[list[str]], number: int, routes: Routes, setting: Setting) -> None:
        local = set(groups[number])
        self.nodes = build(plan, local, setting)
        self.machine = Machine(plan, self.nodes, local)
        self.out = {id: [c for (source, _), c in routes.items() if source == id] for id in local}
        incoming = [c for (_, target), c in routes.items() if target == number]
        self.late = [c for c in incoming if not c.early]
        self.before: dict[str, list[Channel]] = {id: [] for id in local}
        for channel in incoming:
            if channel.early:
                # Receive just before the first reader, so that other nodes of the process do not wait.
                reader = next(
                    firing.id
                    for firing in self.machine.firings
                    if any(e.source in channel.ends and e.edge and e.edge.delay is None for e in firing.inputs)
                )
                self.before[reader].append(channel)

    def run(self, ticks: int, check_peers: Callable[[], None]) -> None:
        machine = self.machine
        for _ in range(ticks):
            machine.begin()
            for index, firing in enumerate(machine.firings):
                for channel in self.before[firing.id]:
                    self._receive(channel, check_peers)
                machine.fire(index)
                machine.hold(firing.id)
                for channel in self.out[firing.id]:
                    while not channel.free.acquire(timeout=PATIENCE):
                        check_peers()
                    channel.sender.send(tuple(machine.values[machine.slots[end]] for end in channel.ends))
            for channel in self.late:
                self._receive(channel, check_peers)
            machine.end()

    def _receive(self, channel: Channel, check_peers: Callable[[], None]) -> None:
        while not channel.receiver.poll(PATIENCE):
            check_peers()
        values = channel.receiver.recv()
        channel.free.release()
        for end, value in zip(channel.ends, values, strict=True):
            self.machine.values[self.machine.slots[end]] = value
        self.machine.hold(channel.source)


class QueueEngine:
    """Runs a graph with its environments in their own processes.

    Args:
        graph: The graph, checked or not.
        into: Directory of the run.
        trust: Allow Code nodes to run.
        **run: Overrides of seed, total_steps and path.
    """

    def __init__(self, graph: Graph | Checked, *, into: Path | str = ".", trust: bool = False, **run: Any) -> None:
        self.plan = schedule(graph, **run)
        self.groups = process_groups(self.plan)
        self.setting = Setting(Path(into), trust)
        self.nodes: dict[str, Any] = {}

    @property
    def processes(self) -> int:
        """Number of processes, this one included."""
        return len(self.groups)

    def run(self, ticks: int | None = None) -> int:
        """Run to the end, or for some ticks, and return the number of ticks."""
        ticks = self.plan.ticks if ticks is None else min(ticks, self.plan.ticks)
        # fork starts in milliseconds and knows custom nodes of the main script.
        context = multiprocessing.get_context("fork" if os.name == "posix" else "spawn")
        routes = channels(self.plan, self.groups, context)
        results = [context.Pipe(duplex=False) for _ in self.groups[1:]]
        # The graph travels as text: with spawn, nodes and functions of other modules could not be pickled.
        task = (canonical(self.plan.checked.graph), asdict(self.plan.run), self.setting)
        workers = [
            context.Process(target=_work, args=(*task, number, routes, ticks, sender), daemon=True)
            for number, (_, sender) in enumerate(results, 1)
        ]
        for worker in workers:
            worker.start()

        finished: dict[int, dict[str, Any]] = {}

        def check_workers() -> None:
            for number, ((receiver, _), worker) in enumerate(zip(results, workers, strict=True)):
                # A worker may be done while this process still waits for another one.
                if number not in finished and receiver.poll():
                    finished[number] = _result(receiver)
                elif number not in finished and not worker.is_alive() and not receiver.poll():
                    raise GraphError(f"a process of the graph ended with exit code {worker.exitcode}")

        try:
            island = _Island(self.plan, self.groups, 0, routes, self.setting)
            self.nodes = dict(island.nodes)
            island.run(ticks, check_workers)
            for number, (receiver, _) in enumerate(results):
                while number not in finished:
                    receiver.poll(PATIENCE)
                    check_workers()
                # Of a remote node only its weights are known here.
                for id, weights in finished[number].items():
                    self.nodes[id] = SimpleNamespace(state_dict=lambda weights=weights: weights)
        finally:
            for worker in workers:
                # Workers end by themselves after their last tick; five seconds cover a slow close of an environment.
                worker.join(timeout=5.0)
                if worker.is_alive():
                    worker.terminate()
        return ticks

    def sha256(self) -> str:
        """Return a hash of all weights in all processes."""
        return parameters_sha256(self.nodes)

    def close(self) -> None:
        """Release files and environments of the nodes in this process."""
        close_all(self.nodes)


def _result(receiver: Connection) -> dict[str, Any]:
    kind, content = receiver.recv()
    if kind == "error":
        raise FiringError(content)
    return content


def _work(
    text: str, run: dict[str, Any], setting: Setting, number: int, routes: Routes, ticks: int, sender: Connection
) -> None:
    """Run one island in its own process."""
    # Ctrl-C reaches all processes of the terminal; the first one decides when the others stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = os.getppid()

    def check_parent() -> None:
        if os.getppid() != parent:
            raise SystemExit(1)

    try:
        plan = schedule(parse_graph(text), **run)
        island = _Island(plan, process_groups(plan), number, routes, setting)
        island.run(ticks, check_parent)
        sender.send(("learned", weights_of(island.nodes)))
        close_all(island.nodes)
    except Exception as why:
        sender.send(("error", str(why)))
