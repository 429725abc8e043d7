"""`surefoot record` and `clone`: datasets and options of cloning."""

from __future__ import annotations

import pytest

from surefoot.cli.main import main
from surefoot.cli.verbs.record_clone import open_dataset
from surefoot.errors import RecordingError


def test_a_recording_has_one_target(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["record", "none", "-o", "a", "--minari", "b"]) == 64
    assert "pass one of them" in capsys.readouterr().err


def test_a_missing_file_is_named_with_the_command_that_writes_it() -> None:
    with pytest.raises(RecordingError, match="no file gone.safetensors; `surefoot record RUN` writes one"):
        open_dataset("gone.safetensors")
