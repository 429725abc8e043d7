"""A run of a graph that outlives its process: checkpoints on the way, and the next process goes on from the last."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from surefoot.errors import CheckpointIncompatible, CheckpointMissing, RunError
from surefoot.graph.run.interpreter import Interpreter
from surefoot.graph.run.snapshot import restore, snapshot, why_not
from surefoot.learn.checkpoint.checkpoint import load_checkpoint, save_checkpoint
from surefoot.learn.checkpoint.retention import prune

KEPT = 2


def run_and_keep(engine: Interpreter, folder: Path, every: int, *, say: Callable[[str], Any]) -> int:
    """Go on from what is in `folder`, to the end or to Ctrl-C, with a checkpoint every so many ticks; ticks in all."""
    if (reason := why_not(engine)) is not None:
        raise RunError(f"this run cannot be kept: {reason}; run it without --keep")
    digest = engine.plan.checked.graph.sha256()
    settings = {"seed": engine.plan.run.seed, "total_steps": engine.plan.run.total_steps, "path": engine.plan.run.path}
    try:
        parts = load_checkpoint(folder).parts
    except CheckpointMissing:
        parts = None
    if parts is not None:
        if parts["of"] != {"graph": digest, **settings}:
            raise CheckpointIncompatible(f"{folder} is of another graph, seed, path or length; name another directory")
        restore(engine, parts["graph"])
        say(f"goes on from tick {engine.ticks:,}")
    interrupted = threading.Event()

    def stop(*_: object) -> None:
        interrupted.set()
        engine.pause()

    here = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, stop) if here else None
    try:
        while not engine.finished and not interrupted.is_set():
            engine.run(every)
            save_checkpoint(folder, engine.ticks, {"graph": snapshot(engine), "of": {"graph": digest, **settings}})
            prune(folder, KEPT)
    finally:
        if here:
            signal.signal(signal.SIGINT, before)
    if interrupted.is_set():
        say(f"stopped after tick {engine.ticks:,} of {engine.plan.ticks:,}; the same command goes on")
    return engine.ticks
