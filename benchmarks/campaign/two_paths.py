"""D2: random policies, settings and rollouts, each learned from by the kernel and by torch: weights and reports are the same."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings

from campaign.frame import Block, Found, from_tests, seed

RATE = "the kernel's learning rate is 2 % off"
SHIFTED = "the kernel takes the advantage of the sample before"


@contextlib.contextmanager
def with_defect(defect: str) -> Iterator[None]:
    from surefoot.learn import native

    learn = native.NativeUpdate.learn

    def too_fast(self: Any, batch: Any, knobs: Any) -> Any:
        return learn(self, batch, knobs._replace(lr=1.02 * knobs.lr))

    def shifted(self: Any, batch: Any, knobs: Any) -> Any:
        return learn(self, dataclasses.replace(batch, advantage=np.roll(batch.advantage, 1)), knobs)

    if defect == RATE:
        native.NativeUpdate.learn = too_fast  # type: ignore[method-assign]
    elif defect == SHIFTED:
        native.NativeUpdate.learn = shifted  # type: ignore[method-assign]
    try:
        yield
    finally:
        native.NativeUpdate.learn = learn  # type: ignore[method-assign]


def check(count: int, defect: str = "") -> Found:
    """Two updates of each of `count` configs; the cases and the tolerances are those of tests/property/test_kernel.py."""
    import torch

    from surefoot.native import instruction_set

    torch.set_num_threads(1)
    tests, found, rounding = from_tests("property/test_kernel.py"), Found(), 0
    unshrunk = settings(
        max_examples=count,
        database=None,
        deadline=None,
        derandomize=not seed(0),
        suppress_health_check=list(HealthCheck),
    )

    @unshrunk
    @given(case=tests.cases())
    def each(case: Any) -> None:
        nonlocal rounding
        found.tried += 1
        ours, theirs = tests.twins(*case)
        if ours.native is None:
            found.fault(f"the kernel does not learn {case}")
            return
        try:
            tests.compare(ours, theirs, tests.make_rollout(theirs.policy, case[2]))
        except AssertionError as difference:
            if not defect and tests.rounding_decides(*case):
                rounding += 1
                return
            found.silent += 1
            found.fault(f"{str(difference)[:150]}: {case}")

    with with_defect(defect):
        each()
    found.notes = {"instruction set": instruction_set(), "rounding decides": rounding}
    return found


BLOCK = Block(
    name="D2",
    title="random policies and settings, kernel and torch",
    over="engine",
    unit="configs",
    smoke=5,
    count=100,
    long=2000,
    check=check,
    mutants={RATE: 10, SHIFTED: 10},
)
