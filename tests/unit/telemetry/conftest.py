"""A clock that stands still until told, and recorders that use it: how busy this machine is changes no answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from surefoot.telemetry.writer import Recorder


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def open_recorder(tmp_path: Path, clock: Clock) -> Iterator[Callable[..., Recorder]]:
    """Opens recorders on the record of `tmp_path`; a second on each call passes for every update."""
    opened: list[Recorder] = []

    def open_(**options: Any) -> Recorder:
        recorder = Recorder(tmp_path, "walk-1", clock=clock, **{"stopwatch": lambda: 0.0} | options)
        opened.append(recorder)
        return recorder

    yield open_
    for recorder in opened:
        recorder.close()
