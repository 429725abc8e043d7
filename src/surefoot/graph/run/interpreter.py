"""The engine of the editor: runs ticks in this process; you can watch values, pause, and step node by node."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.errors import GraphError
from surefoot.graph.run.digits import parameters_sha256
from surefoot.graph.run.live_values import Live, summary
from surefoot.graph.run.tick import Machine
from surefoot.graph.schedule import Schedule, Setting, build, schedule
from surefoot.graph.spec.checked import Checked
from surefoot.graph.spec.model import End, Graph, as_end

# Seconds between two summaries of a loop that runs by whole rollouts: for each, one rollout is fired node by node. Long rollouts
# are watched less often: their summaries are at least 30 times as far apart as one takes, but not further than 2 s.
WHOLE_GAP, WHOLE_SHARE, LONGEST_GAP = 0.2, 30.0, 2.0
_TESTS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
}


@dataclass(frozen=True, slots=True)
class Break:
    """A breakpoint: stop after the tick in which a value meets a condition.

    `Break("trainer.loss_info", ">", 0.05, key="approx_kl")` stops when the KL divergence exceeds 0.05.

    Args:
        end: The output, as node.port.
        test: One of > < >= <= ==.
        limit: The number to compare with.
        key: Entry of a table to compare.
    """

    end: str
    test: str
    limit: float
    key: str = ""

    def __post_init__(self) -> None:
        if self.test not in _TESTS:
            raise GraphError(f"the test of a breakpoint is {self.test!r}; it must be one of {' '.join(_TESTS)}")
        as_end(self.end)

    def is_met(self, value: Any) -> bool:
        """Return whether a value meets the condition; of an array, whether its mean does."""
        if self.key:
            value = value.get(self.key) if isinstance(value, dict) else getattr(value, self.key, None)
        # Text and handles have no number, so they never meet a condition.
        with suppress(TypeError, ValueError, AttributeError):
            number = float(value.mean()) if hasattr(value, "mean") else float(value)
            return _TESTS[self.test](number, self.limit)
        return False


class Interpreter:
    """Runs a graph in this process, as a context manager; iterating yields the metrics of each update.

    Args:
        graph: The graph, checked or not, or its schedule.
        into: Directory of the run.
        trust: Allow Code nodes to run.
        live: Which outputs are watched.
        profile: Measure the time of each node, in every tick.
        fuse: Run the plain loop in a native environment by whole rollouts, but for those in which a watched value is due; these
            measure the time of each node, too. False fires every node.
        **run: Overrides of seed, total_steps and path.
    """

    def __init__(
        self,
        graph: Graph | Checked | Schedule,
        *,
        into: Path | str = ".",
        trust: bool = False,
        live: Live | None = None,
        profile: bool = False,
        fuse: bool = True,
        **run: Any,
    ) -> None:
        # Imports torch, which a studio without a run does not load.
        from surefoot.graph.run.whole_rollouts import whole_rollouts

        self.plan = graph if isinstance(graph, Schedule) else schedule(graph, **run)
        # Asked for in every tick.
        self._last_tick = self.plan.ticks
        self.nodes = build(self.plan, setting=Setting(Path(into), trust))
        self.machine = Machine(self.plan, self.nodes)
        self.fuse, self._whole = fuse, whole_rollouts(self.machine)
        self.trainers = [each.id for each in self.plan.firings if each.declared.trains]
        self.live = live or Live()
        if self._whole is not None:
            self.live.gap = max(self.live.gap, WHOLE_GAP)
        self.breaks: list[Break] = []
        self.seconds = dict.fromkeys((each.id for each in self.plan.firings), 0.0)
        """Time per node in the ticks that are measured."""
        self.profile = profile
        self.stopped_by: Break | None = None
        self.fired = ""
        """The node that `step_node` fired last."""
        self._index = 0
        self._paused = False
        self._fired_since: float | None = None
        """When a rollout began that is fired node by node only because a summary is due."""

    @property
    def by_rollouts(self) -> bool:
        """Whether this is a loop that runs by whole rollouts while no value is due."""
        return self._whole is not None

    @property
    def ticks(self) -> int:
        """Complete ticks so far."""
        return self.machine.tick

    @property
    def updates(self) -> int:
        """Updates of the first trainer."""
        return getattr(self.nodes[self.trainers[0]], "updates", 0) if self.trainers else 0

    @property
    def finished(self) -> bool:
        return self.machine.tick >= self._last_tick

    def pause(self) -> None:
        """Stop `run` at the end of this tick; may be called from another thread."""
        self._paused = True

    def tick(self) -> None:
        """Finish the current tick, or run one tick."""
        if self._index or self.profile or self.by_rollouts:
            while not self.step_node():
                pass
        else:
            self.machine.run_tick()
        self.live.after_tick(self.machine.tick, self.machine.value)

    def step_node(self) -> bool:
        """Fire the next node that is due; return True if that ended the tick."""
        machine = self.machine
        if self._index == 0:
            machine.begin()
        while self._index < len(machine.firings):
            index, self._index = self._index, self._index + 1
            id = machine.firings[index].id
            # Measured always: two clock calls per node are cheap next to a node that is stepped by a person.
            start = time.perf_counter()
            fired = machine.fire(index)
            machine.hold(id)
            self.seconds[id] += time.perf_counter() - start
            self.fired = id if fired else self.fired
            if fired and self._index < len(machine.firings):
                return False
        self._index = 0
        machine.end()
        return True

    @property
    def next_node(self) -> str:
        """The node that `step_node` looks at next."""
        return self.machine.firings[self._index].id

    def run(self, ticks: int | None = None, stop: Callable[[], bool] = lambda: False) -> int:
        """Run until the end, a breakpoint, `pause` or `stop`, and return the number of ticks.

        Args:
            ticks: Maximal number of ticks; all that remain by default.
            stop: Called before every tick; return True to stop.
        """
        machine, start, live = self.machine, self.machine.tick, self.live
        last = self._last_tick if ticks is None else min(self._last_tick, start + ticks)
        self._paused, self.stopped_by = False, None
        while machine.tick < last and not self._paused and not stop():
            if self._index or self.profile:
                self.tick()
            elif self.fuse and self._whole and not (self.breaks or live.is_due) and self._whole.is_possible(last):
                if self._fired_since is not None:
                    live.wait(min(LONGEST_GAP, WHOLE_SHARE * (live.clock() - self._fired_since)))
                    self._fired_since = None
                self._whole.run()
                live.catch_up(machine.tick, machine.value)
            elif self._whole:
                # The first rollout does not count: it builds the networks.
                if self._fired_since is None and machine.tick >= self._whole.steps:
                    self._fired_since = live.clock()
                self.tick()
            else:
                # As `tick`, without a call of the clock per tick if nothing is watched.
                machine.run_tick()
                if live.rings:
                    live.after_tick(machine.tick, machine.value)
            for each in self.breaks:
                value = machine.value(as_end(each.end))
                if value is not None and each.is_met(value):
                    self.stopped_by = each
                    return machine.tick - start
        return machine.tick - start

    def run_to_update(self) -> bool:
        """Run until the next update; return False if the run ended or was stopped before."""
        ends = [End(id, "training_complete") for id in self.trainers]
        if not ends:
            raise GraphError("this graph has no trainer, so there is no update to run to")
        while not self.finished:
            if not self.run(self._whole.steps - self.ticks % self._whole.steps if self._whole else 1):
                return False
            if any(self.machine.value(end) is not None for end in ends):
                return True
            if self.stopped_by is not None:
                return False
        return False

    def value_summary(self, end: End | str) -> dict[str, Any]:
        """Return a summary of the value of an output."""
        return summary(self.machine.value(as_end(end)))

    def shares(self) -> dict[str, float]:
        """Return the share of the time that each node took in the ticks that were measured."""
        total = sum(self.seconds.values()) or 1.0
        return {id: seconds / total for id, seconds in self.seconds.items()}

    def sha256(self) -> str:
        """Return a hash of all weights."""
        return parameters_sha256(self.nodes)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the loss_info of the first trainer after each update."""
        while self.trainers and self.run_to_update():
            yield self.machine.value(End(self.trainers[0], "loss_info"))

    def close(self) -> None:
        """Release files and environments of the nodes."""
        close_all(self.nodes)

    def __enter__(self) -> Interpreter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def close_all(nodes: dict[str, Any]) -> None:
    """Close all nodes that can be closed."""
    for node in nodes.values():
        if callable(close := getattr(node, "close", None)):
            close()
