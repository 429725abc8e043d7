"""A file that grows by whole lines."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from surefoot.errors import TelemetryError
from surefoot.telemetry.files.line_file import LineFile, NoFile


def test_lines_are_appended_in_order(tmp_path: Path) -> None:
    file = LineFile(tmp_path / "r.ndjson")
    file.append(b"one\n")
    file.append(b"two\n")
    file.sync()
    assert (tmp_path / "r.ndjson").read_bytes() == b"one\ntwo\n"
    assert file.size == 8
    file.close()


def test_a_line_that_does_not_fit_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = LineFile(tmp_path / "r.ndjson")
    file.append(b"one\n")
    write, calls = os.write, 0

    def full(fd: int, data: bytes) -> int:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise OSError(28, "No space left on device")
        return write(fd, data[:2])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(TelemetryError, match="No space left on device"):
            file.append(b"two\n")
    assert (tmp_path / "r.ndjson").read_bytes() == b"one\n"
    file.close()


def test_a_second_writer_is_refused_until_the_first_closes(tmp_path: Path) -> None:
    first = LineFile(tmp_path / "r.ndjson")
    with pytest.raises(TelemetryError, match="another process"):
        LineFile(tmp_path / "r.ndjson")
    first.close()
    LineFile(tmp_path / "r.ndjson").close()


@pytest.mark.parametrize("off", [False, True])
def test_a_closed_file_takes_no_line(tmp_path: Path, off: bool) -> None:
    file = NoFile() if off else LineFile(tmp_path / "r.ndjson")
    file.close()
    assert file.closed
    with pytest.raises(TelemetryError, match="closed"):
        file.append(b"late\n")
