"""The engine of the editor: the same ticks, and between any two firings one may look, wait, or stop."""

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

_TESTS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
}


@dataclass(frozen=True, slots=True)
class Break:
    """Stop after the tick in which this is so: `Break("trainer.loss_info", ">", 0.05, key="approx_kl")`."""

    end: str
    test: str
    limit: float
    key: str = ""

    def __post_init__(self) -> None:
        if self.test not in _TESTS:
            raise GraphError(f"a break tests with {self.test!r}; it is one of {' '.join(_TESTS)}")
        as_end(self.end)

    def met(self, value: Any) -> bool:
        """True if the value that was said meets it; an array does if its mean does."""
        if self.key:
            value = value.get(self.key) if isinstance(value, dict) else getattr(value, self.key, None)
        with suppress(TypeError, ValueError, AttributeError):
            number = float(value.mean()) if hasattr(value, "mean") else float(value)
            return _TESTS[self.test](number, self.limit)
        return False


class Interpreter:
    """A graph at work in this process. `run` goes on until the end, `pause`, or a break; `tick` and `step_node` go slower."""

    def __init__(
        self,
        graph: Graph | Checked | Schedule,
        *,
        into: Path | str = ".",
        trust: bool = False,
        live: Live | None = None,
        profile: bool = False,
        **run: Any,
    ) -> None:
        self.plan = graph if isinstance(graph, Schedule) else schedule(graph, **run)
        self.nodes = build(self.plan, setting=Setting(Path(into), trust))
        self.machine = Machine(self.plan, self.nodes)
        self._declared = {each.id: each.declared for each in self.plan.firings}
        self.live = live or Live()
        self.breaks: list[Break] = []
        self.seconds = dict.fromkeys((each.id for each in self.plan.firings), 0.0)
        """Of each node, where `profile` is set."""
        self.profile = profile
        self.stopped_by: Break | None = None
        self.fired = ""
        """The node that `step_node` fired last."""
        self._at = 0
        self._paused = False

    @property
    def ticks(self) -> int:
        """Whole ticks so far."""
        return self.machine.tick

    @property
    def updates(self) -> int:
        """Of the first trainer."""
        found = [getattr(node, "updates", 0) for id, node in self.nodes.items() if self._is_trainer(id)]
        return found[0] if found else 0

    def _is_trainer(self, id: str) -> bool:
        return self._declared[id].trains

    @property
    def finished(self) -> bool:
        return self.machine.tick >= self.plan.ticks

    def pause(self) -> None:
        """Stop at the end of this tick; from another thread too."""
        self._paused = True

    def tick(self) -> None:
        """What is left of this tick, or a whole one."""
        if self._at or self.profile:
            while not self.step_node():
                pass
        else:
            self.machine.go()
        if self.live.due():
            self.live.look(self.machine.tick, self.machine.value)

    def step_node(self) -> bool:
        """Fire the next node that is due; True if that ended the tick."""
        machine = self.machine
        if self._at == 0:
            machine.begin()
        while self._at < len(machine.firings):
            index, self._at = self._at, self._at + 1
            id = machine.firings[index].id
            before = time.perf_counter()
            fired = machine.fire(index)
            machine.hold(id)
            self.seconds[id] += time.perf_counter() - before
            self.fired = id if fired else self.fired
            if fired and self._at < len(machine.firings):
                return False
        self._at = 0
        machine.end()
        return True

    @property
    def next_node(self) -> str:
        """Which one `step_node` looks at next."""
        return self.machine.firings[self._at].id

    def run(self, ticks: int | None = None, stop: Callable[[], bool] = lambda: False) -> int:
        """Go on until the end of the run, or for so many ticks; returns how many there were."""
        machine, begun, live = self.machine, self.machine.tick, self.live
        last = self.plan.ticks if ticks is None else min(self.plan.ticks, begun + ticks)
        self._paused, self.stopped_by = False, None
        while machine.tick < last and not self._paused and not stop():
            if self._at or self.profile:
                self.tick()
            else:
                machine.go()
                if live.rings and live.due():
                    live.look(machine.tick, machine.value)
            for each in self.breaks:
                value = machine.value(as_end(each.end))
                if value is not None and each.met(value):
                    self.stopped_by = each
                    return machine.tick - begun
        return machine.tick - begun

    def run_to_update(self) -> bool:
        """Go on until the next update is made; False if the run ended or was stopped before."""
        ends = [End(each.id, "training_complete") for each in self.plan.firings if self._is_trainer(each.id)]
        if not ends:
            raise GraphError("this graph has no trainer, so there is no next update to run to")
        while not self.finished:
            if not self.run(1):
                return False
            if any(self.machine.value(end) is not None for end in ends):
                return True
            if self.stopped_by is not None:
                return False
        return False

    def look(self, end: End | str) -> dict[str, Any]:
        """What is on an output now."""
        return summary(self.machine.value(as_end(end)))

    def shares(self) -> dict[str, float]:
        """Share of the time that each node took, where `profile` is set."""
        total = sum(self.seconds.values()) or 1.0
        return {id: seconds / total for id, seconds in self.seconds.items()}

    def sha256(self) -> str:
        """Of all that was learned."""
        return parameters_sha256(self.nodes)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The loss_info of the first trainer, an update at a time."""
        end = next((End(each.id, "loss_info") for each in self.plan.firings if self._is_trainer(each.id)), None)
        while end is not None and self.run_to_update():
            yield self.machine.value(end)

    def close(self) -> None:
        """Free what nodes hold."""
        close_all(self.nodes)

    def __enter__(self) -> Interpreter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def close_all(nodes: dict[str, Any]) -> None:
    """Let nodes that hold something free it."""
    for node in nodes.values():
        if callable(close := getattr(node, "close", None)):
            close()
