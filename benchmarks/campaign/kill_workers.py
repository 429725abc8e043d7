"""K3: workers of a training are killed and stopped; it goes on, and no step of theirs is learned from twice."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from campaign.frame import ROOT, Block, Found, load, seed

BACK_SECONDS, TIMEOUT = 2.0, 1.0
"""In the median, from when a loss can be known: a stopped worker is given up after its time-out."""

CALM = 1.8
"""Seconds between two signals. Three workers take turns: one that dies five times within 5 s of its start is given up."""


@contextlib.contextmanager
def a_batch_used_twice() -> Iterator[None]:
    """After a worker was lost, the rollout before is handed out again instead of a new one."""
    from surefoot.train.collect.collector import Collector

    collect = Collector.collect
    kept: dict[int, tuple[Any, int]] = {}

    def again(self: Any, policy_version: int = 0) -> Any:
        before = kept.get(id(self))
        if before is not None and self.world.losses > before[1]:
            kept[id(self)] = (before[0], self.world.losses)
            return before[0]
        rollout = collect(self, policy_version)
        kept[id(self)] = (rollout, before[1] if before else 0)
        return rollout

    Collector.collect = again  # type: ignore[method-assign]
    try:
        yield
    finally:
        Collector.collect = collect  # type: ignore[method-assign]


def check(count: int, defect: str = "") -> Found:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    supervise = load(ROOT / "benchmarks/supervise.py")
    stops = max(1, count // 4)
    kills = count - stops
    with a_batch_used_twice() if defect else contextlib.nullcontext():
        told = supervise.campaign(kills, stops, timeout=TIMEOUT, calm=CALM, least=0, seed=seed(3))
    found = Found(tried=count, kills=kills, notes={"stops": stops})
    back = told["back"]
    found.notes |= {f"back after {name}, median s": round(each["median"], 2) for name, each in back.items()}
    found.notes |= {"steps": told["steps"], "longest pause s": round(told["longest_pause"], 2)}
    found.silent = told["used_twice"]
    if told["skipped"]:
        found.fault(f"{told['skipped']} steps were left out")
    if told["restarts"] != count:
        found.fault(f"{count} losses, but {told['restarts']} restarts")
    for name, each in back.items():
        if each["median"] > BACK_SECONDS + TIMEOUT * (name == "SIGSTOP"):
            found.fault(f"after {name} it took {each['median']:.1f} s in the median until all took part")
    return found


BLOCK = Block(
    name="K3",
    title="kill -9 and SIGSTOP of the workers of a training",
    over="engine",
    unit="kills and stops",
    smoke=3,
    count=40,
    long=1000,
    check=check,
    mutants={"a worker's batch is used twice": 4},
)
