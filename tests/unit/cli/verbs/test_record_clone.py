"""`surefoot record` and `clone`: datasets and options of cloning."""

from __future__ import annotations

import pytest

from surefoot.cli.main import main, read_arguments
from surefoot.cli.verbs.record_clone import open_dataset
from surefoot.errors import RecordingError


def test_a_recording_has_one_target(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["record", "none", "-o", "a", "--minari", "b"]) == 64
    assert "pass one of them" in capsys.readouterr().err


def test_a_missing_file_is_named_with_the_command_that_writes_it() -> None:
    with pytest.raises(RecordingError, match="no file gone.safetensors; `surefoot record RUN` writes one"):
        open_dataset("gone.safetensors")


def test_earlier_flags_of_cloning_are_options_of_clone() -> None:
    words = ["d", "--env", "E", "--epochs", "3", "--no-critic", "--minibatch", "8", "--out", "copy"]
    args = read_arguments("clone", words)
    assert args.clone == ("epochs=3", "vf_coef=0", "minibatch_size=8")
    assert args.name == "copy"
