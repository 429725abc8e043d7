"""M1: the code is changed in one place at a time, and the tests of that file must notice."""

from __future__ import annotations

import importlib.abc
import importlib.util
import os
import resource
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaign.frame import ROOT, Block, Found, dice
from campaign.mutator import Mutant, mutants

BAR = 0.90
CPU_SECONDS, SECONDS, STILL = 60, 400.0, 10.0
"""Of the processor, of the clock, and of the clock without any of the processor: tests that wait for what never comes.
Those that take longer are counted apart, because a busy machine is slow too."""
ELSEWHERE = "the tests of another file are run instead"


@dataclass(frozen=True, slots=True)
class Target:
    module: str
    tests: tuple[str, ...]
    only: tuple[str, ...] = ()

    @property
    def file(self) -> Path:
        return ROOT / "src" / Path(*self.module.split(".")).with_suffix(".py")


TARGETS = (
    Target("surefoot.core.advantage", ("property/test_gae.py",)),
    Target("surefoot.core.losses", ("unit/core/test_losses.py",)),
    Target("surefoot.core.masked", ("unit/core/test_moments.py", "unit/core/test_losses.py")),
    Target(
        "surefoot.nets.distributions",
        ("property/test_distributions.py", "unit/nets/test_distributions.py"),
        ("mask_logits", "require_choice", "Categorical", "MultiCategorical"),
    ),
    Target("surefoot.data.journal", ("unit/data/test_journal.py",)),
    Target("surefoot.server.decisions.store", ("unit/server/decisions/test_store.py",)),
    Target("surefoot.learn.checkpoint.checkpoint", ("unit/learn/checkpoint/test_checkpoint.py",)),
)


class Instead(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from another source."""

    def __init__(self, target: Target, source: str) -> None:
        self.target, self.source = target, source

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != self.target.module:
            return None
        return importlib.util.spec_from_file_location(name, self.target.file, loader=self)

    def create_module(self, spec: Any) -> Any:
        return None

    def exec_module(self, module: Any) -> None:
        exec(compile(self.source, str(self.target.file), "exec"), module.__dict__)


LITTLE = 5
"""Hundredths of a second of the processor in one of the clock: a loop that waits uses no more."""


def outcome(target: Target, source: str, tests: tuple[str, ...]) -> str:
    """alive if all tests pass with this source, killed, or out of time. In a fork, so that torch is loaded only once."""
    child = os.fork()
    if child == 0:
        code = 3
        try:
            os.setpgid(0, 0)
            resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
            silent = os.open(os.devnull, os.O_RDWR)
            for fd in (0, 1, 2):
                os.dup2(silent, fd)
            os.chdir(ROOT)
            sys.meta_path.insert(0, Instead(target, source))
            import hypothesis
            import pytest

            quick = (
                hypothesis.Phase.explicit,
                hypothesis.Phase.generate,
            )  # that it fails is enough: no smaller example
            hypothesis.settings.register_profile("noticed", phases=quick, database=None, deadline=None)
            options = ("-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov", "-p", "no:schemathesis")
            options = (*options, "--hypothesis-profile", "noticed")
            code = int(pytest.main([*options, *(str(ROOT / "tests" / test) for test in tests)]))
        finally:
            os._exit(code)
    began = moved = looked = time.monotonic()
    used = 0
    while (now := time.monotonic()) - began < SECONDS and now - moved < STILL:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return "alive" if code == 0 else "out of time" if code in (-signal.SIGXCPU, -signal.SIGKILL) else "killed"
        if now - looked > 1.0:
            looked, before, used = now, used, _ticks(child)
            moved = now if used > before + LITTLE else moved
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "out of time"


def _ticks(group: int) -> int:
    """Of the processor, used by the processes of a group so far."""
    total = 0
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group:
            total += int(fields[11]) + int(fields[12])
    return total


def chosen(count: int) -> list[tuple[Target, Mutant]]:
    """`count` of all mutants, the same ones for the same seed, from every file in proportion."""
    every = [(target, mutant) for target in TARGETS for mutant in mutants(target.file.read_text(), target.only)]
    return every if count >= len(every) else dice(11).sample(every, count)


def check(count: int, defect: str = "") -> Found:
    import hypothesis  # noqa: F401
    import numpy  # noqa: F401
    import pytest  # noqa: F401
    import torch

    torch.set_num_threads(1)
    found, killed, told, alive = Found(), 0, dict[str, list[int]](), list[str]()
    picked, late = chosen(count), 0
    for target in {target for target, _ in picked}:
        if outcome(target, target.file.read_text(), target.tests) != "alive":
            found.fault(f"the tests of {target.module} fail without any change")
    for target, mutant in picked:
        tests = ("unit/data/test_seeds.py",) if defect else target.tests
        came = outcome(target, mutant.source, tests)
        lives = came == "alive"
        late += came == "out of time"
        found.tried += 1
        killed += not lives
        score = told.setdefault(target.module.removeprefix("surefoot."), [0, 0])
        score[0] += not lives
        score[1] += 1
        if lives and not defect:
            alive.append(f"{target.module}:{mutant.line} {mutant.what}")
            print(f"alive: {alive[-1]}", flush=True)
    share = killed / max(1, found.tried)
    found.notes = {
        "killed": killed,
        "of them out of time": late,
        **{module: f"{k} of {n}" for module, (k, n) in sorted(told.items())},
    }
    found.notes["alive"] = alive[:100]
    if share < BAR:
        found.fault(f"{killed} of {found.tried} mutants were noticed, fewer than {BAR:.0%}")
    return found


BLOCK = Block(
    name="M1",
    title="mutation testing: one change of the code at a time, which its tests must detect",
    over="core, masking, store, checkpoints",
    unit="mutants of the code",
    smoke=2,
    count=60,
    long=100_000,
    check=check,
    mutants={ELSEWHERE: 3},
)
