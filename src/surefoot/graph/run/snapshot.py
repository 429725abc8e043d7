"""Snapshots of a running graph: the state of its nodes, values on delayed edges, and the tick; `run_and_keep` saves them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch

from surefoot.errors import CheckpointIncompatible, CheckpointMissing, RunError
from surefoot.graph.run.interpreter import Interpreter
from surefoot.learn.checkpoint.checkpoint import load_checkpoint, save_checkpoint
from surefoot.learn.checkpoint.retention import prune
from surefoot.learn.checkpoint.typed_state import restoring

# The newest checkpoint, and the one before it in case the newest is damaged; more would only cost disk space.
KEEP = 2


@runtime_checkable
class Restorable(Protocol):
    """A node with a state that can be saved and restored."""

    def snapshot(self) -> dict[str, Any]: ...

    def restore(self, saved: dict[str, Any]) -> None: ...


@runtime_checkable
class CanBeginAnew(Protocol):
    """A node that learns from episodes and can drop unfinished ones."""

    def begin_anew(self) -> None: ...


def why_inexact(engine: Interpreter) -> str | None:
    """Return None if resuming is bit-exact, else the reason why environments begin new episodes."""
    worlds = (getattr(node, "world", None) for node in engine.nodes.values())
    return next((why for world in worlds if (why := getattr(world, "inexact", None)) is not None), None)


def why_not(engine: Interpreter) -> str | None:
    """Return None if a run can be resumed, else the node that cannot be restored."""
    for firing in engine.plan.firings:
        if firing.declared.effect in ("state", "rng") and not isinstance(engine.nodes[firing.id], Restorable):
            return f"{firing.id} ({firing.declared.name}) has no snapshot and restore methods"
    return None


def snapshot(engine: Interpreter) -> dict[str, Any]:
    """Return the parts of a checkpoint; call it between two ticks."""
    machine = engine.machine
    return {
        "tick": machine.tick,
        "nodes": {id: node.snapshot() for id, node in engine.nodes.items() if isinstance(node, Restorable)},
        "waiting": {
            str(n): {"is": value}
            for n, slot in enumerate(_waiting(engine))
            if (value := _plain(machine.values[slot])) is not None
        },
    }


def restore(engine: Interpreter, saved: dict[str, Any]) -> None:
    """Continue from a snapshot of the same graph in an engine that was just built."""
    if (reason := why_not(engine)) is not None:
        raise RunError(f"this run cannot be resumed: {reason}; start it again")
    # The first tick builds networks and learners, which need the shapes of their inputs.
    engine.tick()
    machine = engine.machine
    with restoring("graph"):
        for id, node in engine.nodes.items():
            if isinstance(node, Restorable) and id in saved["nodes"]:
                node.restore(saved["nodes"][id])
        for n, slot in enumerate(_waiting(engine)):
            entry = saved["waiting"].get(str(n))
            # Handles are not saved; the first tick has put the new ones into their slots.
            if entry is not None or _plain(machine.values[slot]) is not None:
                machine.values[slot] = None if entry is None else _arrays(entry["is"])
        machine.tick = int(saved["tick"])
    if why_inexact(engine) is not None:
        _begin_anew(engine)


def _begin_anew(engine: Interpreter) -> None:
    """Replace waiting observations by the first ones of new episodes, and drop unfinished episodes."""
    machine, current = engine.machine, dict[str, Any]()
    for firing in engine.plan.firings:
        source = next((each.source for each in firing.inputs if each.port.name == "sim_handle"), None)
        nodes = [engine.nodes[firing.id], *([] if source is None else [engine.nodes[source.node]])]
        if (obs := next((node.current for node in nodes if hasattr(node, "current")), None)) is not None:
            current[firing.id] = obs
    ends = {slot: end for end, slot in machine.slots.items()}
    for slot, register, _ in machine.carried:
        end = ends[slot]
        if end.port == "observations" and end.node in current:
            machine.values[register] = current[end.node]
    for node in engine.nodes.values():
        if isinstance(node, CanBeginAnew):
            node.begin_anew()


def _waiting(engine: Interpreter) -> list[int]:
    """Return the slots whose value outlives a tick, always in the same order."""
    machine = engine.machine
    return [register for _, register, _ in machine.carried] + [
        held for pairs in machine.holds.values() for _, held in pairs
    ]


def _plain(value: Any) -> Any:
    """Return a value that a file can hold; None for handles, which nodes provide again, and for no value."""
    if isinstance(value, bool | int | float | str | np.ndarray):
        return value
    if isinstance(value, torch.Tensor):
        return value.numpy()
    if isinstance(value, dict) and all(_plain(each) is not None for each in value.values()):  # pyright: ignore[reportUnknownVariableType]
        return {str(name): _plain(each) for name, each in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return None


def _arrays(value: Any) -> Any:
    """Return a value from a file with its arrays copied, as nodes may change them in place."""
    if isinstance(value, dict):
        return {str(name): _arrays(each) for name, each in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return np.array(value) if isinstance(value, np.ndarray | torch.Tensor) else value


def run_and_keep(engine: Interpreter, folder: Path, every: int, *, say: Callable[[str], Any]) -> int:
    """Resume from `folder` if it has a checkpoint, run to the end or to Ctrl-C, and return the ticks in total.

    A checkpoint is saved after every `every` ticks; `say` prints what happens.
    """
    if (reason := why_not(engine)) is not None:
        raise RunError(f"this run cannot be saved: {reason}; run it without --keep")
    identity = {"graph": engine.plan.checked.graph.sha256(), **asdict(engine.plan.run)}
    try:
        parts = load_checkpoint(folder).parts
    except CheckpointMissing:
        parts = None
    if parts is not None:
        if parts["of"] != identity:
            raise CheckpointIncompatible(
                f"{folder} has checkpoints of another graph, seed, path or length; choose another directory"
            )
        restore(engine, parts["graph"])
        say(f"resumes from tick {engine.ticks:,}")
    interrupted = threading.Event()

    def stop(*_: object) -> None:
        interrupted.set()
        engine.pause()

    # Only the main thread may set signal handlers.
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, stop) if is_main else None
    try:
        while not engine.finished and not interrupted.is_set():
            engine.run(every)
            save_checkpoint(folder, engine.ticks, {"graph": snapshot(engine), "of": identity})
            prune(folder, KEEP)
    finally:
        if is_main:
            signal.signal(signal.SIGINT, before)
    if interrupted.is_set():
        say(f"stopped after tick {engine.ticks:,} of {engine.plan.ticks:,}; the same command resumes")
    return engine.ticks
