"""K1: the service is killed under load again and again; what it acknowledged must be in its store, once."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path

from campaign.frame import Block, Found, from_tests


def check(count: int, defect: str = "") -> Found:
    serve = from_tests("e2e/test_serve.py")
    found, died = Found(), list[str]()
    hook = threading.excepthook
    threading.excepthook = lambda args: died.append(f"a client was told what it must not be: {args.exc_value!r}")
    try:
        with tempfile.TemporaryDirectory() as place:
            told, lost, twice = serve.killed(Path(place) / "d", count, serve.MUTANT if defect else "")
    finally:
        threading.excepthook = hook
    found.tried = found.kills = count
    found.acknowledged, found.lost = told, lost
    found.notes = {"stored twice": twice, "clients": 8}
    if twice:
        found.fault(f"{twice} were stored twice")
    if told < 10 * count:
        found.fault(f"only {told} were acknowledged: too few to say anything")
    for sentence in died:
        found.fault(sentence)
    return found


BLOCK = Block(
    name="K1",
    title="kill -9 of the service under load, history checked",
    over="service",
    unit="kills",
    smoke=2,
    count=100,
    long=5000,
    check=check,
    mutants={"acknowledges before the commit": 8},
)
