"""One tick of a schedule, or of a part of it: slots, who fires on which of them, what is carried over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from surefoot.errors import FiringError, SurefootError
from surefoot.graph.schedule import Firing, Schedule
from surefoot.graph.spec.model import ABSENT, End
from surefoot.graph.spec.types import ONCE, TICK


class Machine:
    """Fires nodes on slots. What another process says is put into `slots` by whoever owns the machine."""

    def __init__(self, plan: Schedule, nodes: Mapping[str, Callable[..., Any]], only: set[str] | None = None) -> None:
        self.plan, self.nodes = plan, nodes
        self.firings = [each for each in plan.firings if only is None or each.id in only]
        self.slots: dict[End, int] = {}
        """Of outputs."""
        self.values: list[Any] = []
        self.tick = 0
        for firing in plan.firings:
            for name in firing.outputs:
                self.slots[End(firing.id, name)] = len(self.values)
                self.values.append(None)
        self.carried: list[tuple[int, int, bool]] = []
        """(from, to, keep the last one) at the end of a tick."""
        self.holds: dict[str, list[tuple[int, int]]] = {}
        """{node: (from, to)} where a reader keeps the last value."""
        self.steps = [self._step(each) for each in self.firings]
        mine = {each.id for each in self.firings}
        self.once = [slot for end, slot in self.slots.items() if plan.checked.clocks.get(end) == ONCE]
        self.cleared = [
            self.slots[End(each.id, name)]
            for each in plan.firings
            if each.when == "there" or each.id not in mine
            for name in each.outputs
            if plan.checked.clocks[End(each.id, name)] not in (TICK, ONCE) or each.id not in mine
        ]
        self._seconds: list[float] | None = None

    def _new_slot(self, value: Any) -> int:
        self.values.append(value)
        return len(self.values) - 1

    def _step(
        self, firing: Firing
    ) -> tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...], slice | int | None, str]:
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
                kept = self._new_slot(None)
                self.holds.setdefault(each.source.node, []).append((slot, kept))
                slot = kept
            args.append(slot)
            if each.decides:
                deciding.append(slot)
        first = self.slots[End(firing.id, firing.outputs[0])] if firing.outputs else 0
        out: slice | int | None
        match len(firing.outputs):
            case 0:
                out = None
            case 1:
                out = first
            case count:
                out = slice(first, first + count)
        return self.nodes[firing.id], tuple(args), tuple(deciding), out, firing.when

    def begin(self) -> None:
        """Forget what was said only for its own tick."""
        for slot in self.cleared:
            self.values[slot] = None

    def fire(self, index: int) -> bool:
        """Fire one node if it is due; False if it is not."""
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
            said = call(*[values[slot] for slot in args])
        except Exception as why:
            raise self._failed(index, args, why) from why
        if out is not None:
            values[out] = said  # pyright: ignore[reportArgumentType, reportCallIssue]  # a tuple for a slice, a value for a slot
        return True

    def hold(self, id: str) -> None:
        """Let readers keep what a node said."""
        for slot, kept in self.holds.get(id, ()):
            if self.values[slot] is not None:
                self.values[kept] = self.values[slot]

    def end(self) -> None:
        """Carry over what is read a tick later."""
        values = self.values
        for slot, register, keep in self.carried:
            if not keep or values[slot] is not None:
                values[register] = values[slot]
        if self.tick == 0:
            for slot in self.once:
                values[slot] = None
        self.tick += 1

    def go(self) -> None:
        """One whole tick."""
        if self.cleared:
            self.begin()
        holds = self.holds
        for index, firing in enumerate(self.firings):
            self.fire(index)
            if firing.id in holds:
                self.hold(firing.id)
        self.end()

    def value(self, end: End) -> Any:
        """What was last said there."""
        return self.values[self.slots[end]]

    def _failed(self, index: int, args: tuple[int, ...], why: Exception) -> FiringError:
        firing = self.firings[index]
        given = ", ".join(
            f"{each.port.name} {brief(self.values[slot])}"
            for each, slot in zip(firing.inputs, args, strict=True)
            if each.edge is not None
        )
        said = str(why) if isinstance(why, SurefootError) else f"{type(why).__name__}: {why}"
        error = FiringError(
            f"{firing.id} ({firing.declared.name}) failed in tick {self.tick}: {said}; it was given {given}"
        )
        error.node, error.tick = firing.id, self.tick
        error.inputs = {
            each.port.name: self.values[slot]
            for each, slot in zip(firing.inputs, args, strict=True)
            if each.edge is not None
        }
        return error


def brief(value: Any) -> str:
    """A value in a few words: its form, not its numbers."""
    if isinstance(value, np.ndarray):
        return f"{list(value.shape)} {value.dtype}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} {brief(part)}" for name, part in list(value.items())[:6]) + "}"
    if isinstance(value, str | int | float | bool | None):
        return repr(value)[:60]
    return type(value).__name__
