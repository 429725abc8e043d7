"""All that moves in a graph at work, and how it is put back: nodes, what waits on delayed edges, the clock."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch

from surefoot.errors import RunError
from surefoot.graph.run.interpreter import Interpreter


@runtime_checkable
class Restorable(Protocol):
    """A node that can be put back."""

    def snapshot(self) -> dict[str, Any]:
        """Everything that moves, as arrays and JSON values."""
        ...

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from there."""
        ...


@runtime_checkable
class CanBeginAnew(Protocol):
    """A node that learns from episodes, and can begin with new ones where a world cannot be put back."""

    def begin_anew(self) -> None: ...


def why_inexact(engine: Interpreter) -> str | None:
    """None if a run goes on to the last bit, else what starts new episodes when it is taken up."""
    worlds = (getattr(node, "world", None) for node in engine.nodes.values())
    return next((why for world in worlds if (why := getattr(world, "inexact", None)) is not None), None)


def why_not(engine: Interpreter) -> str | None:
    """None if a run can be taken up again, else the node that cannot be put back."""
    for firing in engine.plan.firings:
        if firing.declared.effect in ("state", "rng") and not isinstance(engine.nodes[firing.id], Restorable):
            return f"{firing.id} ({firing.declared.name}) cannot be put back"
    return None


def snapshot(engine: Interpreter) -> dict[str, Any]:
    """Between two ticks: the parts of a checkpoint."""
    machine = engine.machine
    return {
        "tick": machine.tick,
        "nodes": {id: node.snapshot() for id, node in engine.nodes.items() if isinstance(node, Restorable)},
        "waiting": {
            str(n): {"is": told}
            for n, slot in enumerate(_waiting(engine))
            if (told := _plain(machine.values[slot])) is not None
        },
    }


def restore(engine: Interpreter, saved: dict[str, Any]) -> None:
    """Put a graph that was just built where another one of its kind stood."""
    if (reason := why_not(engine)) is not None:
        raise RunError(f"this run cannot be taken up again: {reason}; start it anew")
    engine.tick()  # builds what is built by what comes in: networks, learners
    machine = engine.machine
    for id, node in engine.nodes.items():
        if isinstance(node, Restorable):
            node.restore(saved["nodes"][id])
    for n, slot in enumerate(_waiting(engine)):
        told = saved["waiting"].get(str(n))
        if told is not None or _plain(machine.values[slot]) is not None:
            machine.values[slot] = None if told is None else _arrays(told["is"])
    machine.tick = int(saved["tick"])
    if why_inexact(engine) is not None:
        _begin_anew(engine)


def _begin_anew(engine: Interpreter) -> None:
    """A world could not be put back: its first observations take the place of what waited, half episodes are dropped."""
    machine, now = engine.machine, dict[str, Any]()
    for firing in engine.plan.firings:
        source = next((each.source for each in firing.inputs if each.port.name == "sim_handle"), None)
        who = [engine.nodes[firing.id], *([] if source is None else [engine.nodes[source.node]])]
        if (seen := next((node.seen for node in who if hasattr(node, "seen")), None)) is not None:
            now[firing.id] = seen
    ends = {slot: end for end, slot in machine.slots.items()}
    for slot, register, _ in machine.carried:
        end = ends[slot]
        if end.port == "observations" and end.node in now:
            machine.values[register] = now[end.node]
    for node in engine.nodes.values():
        if isinstance(node, CanBeginAnew):
            node.begin_anew()


def _waiting(engine: Interpreter) -> list[int]:
    """Slots whose value outlives a tick, always in the same order."""
    machine = engine.machine
    return [register for _, register, _ in machine.carried] + [
        kept for pairs in machine.holds.values() for _, kept in pairs
    ]


def _plain(value: Any) -> Any:
    """A value that can be written down; None for handles, which nodes say again, and for nothing."""
    if isinstance(value, bool | int | float | str | np.ndarray):
        return value
    if isinstance(value, torch.Tensor):
        return value.numpy()
    if isinstance(value, dict) and all(_plain(each) is not None for each in value.values()):  # pyright: ignore[reportUnknownVariableType]
        return {str(name): _plain(each) for name, each in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return None


def _arrays(value: Any) -> Any:
    """As it went along the edge: arrays that nobody else holds."""
    if isinstance(value, dict):
        return {str(name): _arrays(each) for name, each in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return np.array(value) if isinstance(value, np.ndarray | torch.Tensor) else value
