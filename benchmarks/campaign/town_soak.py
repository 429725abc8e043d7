"""S1: three hundred cycles of capture and training in one process: memory, files and threads stay, the record rotates."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from campaign.frame import ROOT, Block, Found, load

MEMORY = "every cycle leaks a little memory"
FILES = "every cycle leaves a file open"
SAME = "every update uses the previous batch"


@contextlib.contextmanager
def with_defect(defect: str) -> Iterator[None]:
    from surefoot.town.training.run import TownTraining

    capture, ppo = TownTraining.capture, TownTraining.learn
    kept: list[Any] = []
    files: list[int] = []
    last: list[Any] = []

    def leaking(self: Any, *args: Any, **more: Any) -> Any:
        if defect == MEMORY:
            kept.append(bytearray(os.urandom(64 << 10)))
        if defect == FILES:
            files.append(os.open("/dev/null", os.O_RDONLY))
        return capture(self, *args, **more)

    def stuck(self: Any, *args: Any, **more: Any) -> Any:
        last[:] = last or ppo(self, *args, **more)
        return list(last)

    TownTraining.capture = leaking  # type: ignore[method-assign]
    if defect == SAME:
        TownTraining.learn = stuck  # type: ignore[method-assign]
    try:
        yield
    finally:
        TownTraining.capture, TownTraining.learn = capture, ppo  # type: ignore[method-assign]
        for fd in files:
            os.close(fd)


def check(count: int, defect: str = "") -> Found:
    from surefoot.train.device import pin_threads

    soak = load(ROOT / "benchmarks/soak.py")
    pin_threads(1)
    with with_defect(defect), tempfile.TemporaryDirectory() as place, contextlib.redirect_stdout(None):
        told = soak.soak(count, Path(place), "queue_conflict", max(4_000, 700 * count))
    found = Found(tried=count)
    # In fewer cycles memory and threads have not settled, and little is learned: what says nothing then is not asked.
    early = {"learning", "threads", *(() if defect == MEMORY else ("memory",))}
    unasked = {"time"} if count >= 100 else {"time", *early}
    for name, holds, words in soak.verdict(told):
        found.notes[name] = words
        if not holds and name not in unasked:
            found.fault(f"{name}: {words}")
    return found


BLOCK = Block(
    name="S1",
    title="a soak test: capture of and learning from towns in one process",
    over="town, telemetry",
    unit="cycles",
    smoke=9,
    count=300,
    long=50_000,
    check=check,
    mutants={MEMORY: 60, FILES: 15, SAME: 15},
)
