"""What the tests that were split from test_writer.py share."""

from collections.abc import Callable
from pathlib import Path

from surefoot.telemetry.reader import read_all
from surefoot.telemetry.schema import (
    Record,
)
from surefoot.telemetry.writer import Recorder

Open = Callable[..., Recorder]


def records(folder: Path) -> list[Record]:
    reading = read_all(folder)
    assert reading.problems == []
    return reading.records
