"""Tests of `surefoot.telemetry.files.line_file`."""

from typing import Any


def finish_syncing(recorder: Any) -> None:
    recorder._file._disk.submit(lambda: None).result()  # comes after what is under way
