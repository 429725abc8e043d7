"""K3b: every rollout backend through the contract that is exported to users, kills and stops included."""

from __future__ import annotations

import importlib

from campaign.frame import Block, Found, is_here

HOME = "surefoot.train.backends"
"""Where `check_backend(name, *, kills, defect="")` and `NAMES` are looked for."""


def check(count: int, defect: str = "") -> Found:
    found = Found()
    if not is_here(HOME) or not hasattr(importlib.import_module(HOME), "check_backend"):
        found.not_here = f"not here yet: {HOME}.check_backend"
        return found
    backends = importlib.import_module(HOME)
    for name in backends.NAMES:
        for finding in backends.check_backend(name, kills=count):
            found.fault(f"{name}: {finding}")
        found.tried += count
        found.kills += count
    return found


BLOCK = Block(
    name="K3b",
    title="the contract of every rollout backend, kills included",
    over="engine",
    unit="kills and stops",
    smoke=1,
    count=10,
    long=100,
    check=check,
    mutants={},
)
