"""One tick of a schedule, or of a part of it: value slots, which nodes fire on them, and what is carried to the next tick."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from surefoot.errors import FiringError, SurefootError
from surefoot.graph.schedule import Firing, Schedule
from surefoot.graph.spec.model import ABSENT, End
from surefoot.graph.spec.types import ONCE, TICK

Step = tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...], slice | int | None, str]
"""(callable, slots of the arguments, slots that must have values, slots of the outputs, when it fires)"""


class Machine:
    """Fires nodes on slots. The owner puts values of other processes into `values`."""

    def __init__(self, plan: Schedule, nodes: Mapping[str, Callable[..., Any]], only: set[str] | None = None) -> None:
        self.plan, self.nodes = plan, nodes
        self.firings = [each for each in plan.firings if only is None or each.id in only]
        self.slots: dict[End, int] = {}
        """Slots of the outputs."""
        self.values: list[Any] = []
        self.tick = 0
        for firing in plan.firings:
            for name in firing.outputs:
                self.slots[End(firing.id, name)] = self._new_slot(None)
        self.carried: list[tuple[int, int, bool]] = []
        """(from, to, hold the last value) at the end of a tick."""
        self.holds: dict[str, list[tuple[int, int]]] = {}
        """{node: (from, to)} for readers that keep the last value."""
        self.steps = [self._step(each) for each in self.firings]
        local = {each.id for each in self.firings}
        clocks = plan.checked.clocks
        self.once = [slot for end, slot in self.slots.items() if clocks.get(end) == ONCE]
        # Outputs that do not have a value in every tick are cleared, or readers would see a value twice.
        self.cleared = [
            self.slots[End(each.id, name)]
            for each in plan.firings
            if each.when == "there" or each.id not in local
            for name in each.outputs
            if clocks[End(each.id, name)] not in (TICK, ONCE) or each.id not in local
        ]

    def _new_slot(self, value: Any) -> int:
        self.values.append(value)
        return len(self.values) - 1

    def _step(self, firing: Firing) -> Step:
        args: list[int] = []
        deciding: list[int] = []
        for each in firing.inputs:
            if each.edge is None or each.source is None:
                args.append(self._new_slot(None))
                continue
            slot = self.slots[each.source]
            if each.edge.delay is not None:
                initial = each.edge.delay.initial
                register = self._new_slot(None if initial is ABSENT else initial)
                self.carried.append((slot, register, each.held))
                slot = register
            elif each.held:
                held = self._new_slot(None)
                self.holds.setdefault(each.source.node, []).append((slot, held))
                slot = held
            args.append(slot)
            if each.decides:
                deciding.append(slot)
        count = len(firing.outputs)
        first = self.slots[End(firing.id, firing.outputs[0])] if count else 0
        # One output is a value, several are a tuple for a slice of slots.
        out = None if count == 0 else first if count == 1 else slice(first, first + count)
        return self.nodes[firing.id], tuple(args), tuple(deciding), out, firing.when

    def begin(self) -> None:
        """Clear values that belong to one tick only."""
        for slot in self.cleared:
            self.values[slot] = None

    def fire(self, index: int) -> bool:
        """Fire a node if it is due, and return whether it was."""
        call, args, deciding, out, when = self.steps[index]
        values = self.values
        if when == "first":
            if self.tick:
                return False
        elif when == "there":
            for slot in deciding:
                if values[slot] is None:
                    return False
        try:
            result = call(*[values[slot] for slot in args])
        except (Exception, SystemExit) as why:
            # Code that calls sys.exit must not end the studio's thread without a word.
            raise self.failure(index, why) from why
        if out is not None:
            values[out] = result  # pyright: ignore[reportArgumentType, reportCallIssue]  # a tuple for a slice, a value for a slot
        return True

    def hold(self, id: str) -> None:
        """Copy the outputs of a node for readers that keep the last value."""
        for slot, held in self.holds.get(id, ()):
            if self.values[slot] is not None:
                self.values[held] = self.values[slot]

    def end(self) -> None:
        """Carry values of delayed edges to the next tick."""
        values = self.values
        for slot, register, keep in self.carried:
            if not keep or values[slot] is not None:
                values[register] = values[slot]
        # Values of the first tick must not be read again in the second.
        if self.tick == 0:
            for slot in self.once:
                values[slot] = None
        self.tick += 1

    def run_tick(self) -> None:
        """Run one tick."""
        if self.cleared:
            self.begin()
        holds = self.holds
        for index, firing in enumerate(self.firings):
            self.fire(index)
            if firing.id in holds:
                self.hold(firing.id)
        self.end()

    def value(self, end: End) -> Any:
        """Return the current value of an output."""
        return self.values[self.slots[end]]

    def failure(self, index: int, why: BaseException) -> FiringError:
        """Return the error of a node that failed, with its inputs."""
        firing = self.firings[index]
        pairs = zip(firing.inputs, self.steps[index][1], strict=True)
        inputs = {each.port.name: self.values[slot] for each, slot in pairs if each.edge is not None}
        # Errors of the library are sentences; others need the name of their class.
        message = str(why) if isinstance(why, SurefootError) else f"{type(why).__name__}: {why}"
        shapes = ", ".join(f"{name} {brief(value)}" for name, value in inputs.items())
        error = FiringError(
            f"{firing.id} ({firing.declared.name}) failed in tick {self.tick}: {message}; its inputs were {shapes}"
        )
        error.node, error.tick, error.inputs = firing.id, self.tick, inputs
        return error


def brief(value: Any) -> str:
    """Return shape and dtype of a value, without its numbers."""
    if isinstance(value, np.ndarray):
        return f"{list(value.shape)} {value.dtype}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} {brief(part)}" for name, part in list(value.items())[:6]) + "}"
    if isinstance(value, str | int | float | bool | None):
        return repr(value)[:60]
    return type(value).__name__
