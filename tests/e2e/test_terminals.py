"""The command line on terminals and interpreters that are unlike the developers'."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def surefoot(*arguments: str, python: tuple[str, ...] = (), **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *python, "-m", "surefoot", *arguments],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        encoding="latin-1",
        check=False,
    )


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
@pytest.mark.parametrize("arguments", [["train", "--help"], ["knobs"], ["presets"], ["runs"]], ids=" ".join)
def test_a_terminal_that_cannot_show_every_character_gets_the_others(encoding, arguments, tmp_path):
    result = surefoot(*arguments, PYTHONIOENCODING=encoding, SUREFOOT_RUNS=str(tmp_path))
    assert (result.returncode, result.stderr) == (0, "")
    assert "Traceback" not in result.stdout


def test_help_without_docstrings_shows_no_signature():
    result = surefoot("train", "--help", python=("-OO",))
    assert result.returncode == 0
    assert "--steps" in result.stdout
    assert "TrainArgs(" not in result.stdout


def test_a_kernel_variable_that_is_empty_is_one_that_is_not_set():
    usual, empty = (surefoot("--version", SUREFOOT_KERNEL=value).stdout for value in ("auto", ""))
    assert usual == empty


def test_native_code_is_announced(tmp_path):
    library = tmp_path / "world.so"
    library.write_bytes(b"not a library")
    result = surefoot("train", str(library), "--runs", str(tmp_path))
    assert result.returncode == 2
    assert f"{library} is native code; it runs in this process" in result.stderr
