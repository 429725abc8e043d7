"""`surefoot store`: exactly one criterion for deletion; errors are one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from surefoot.cli.main import main


@pytest.mark.parametrize("words", [[], ["--older-than", "90d", "--subject", "user-17"]])
def test_a_purge_has_exactly_one_criterion(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["store", "purge", str(tmp_path), *words]) == 64
    assert "pass one of --older-than TIME and --subject ID" in capsys.readouterr().err


def test_a_directory_without_data_cannot_be_backed_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["store", "backup", str(tmp_path / "none"), "-o", str(tmp_path / "copy")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not (tmp_path / "copy").exists()


def test_a_backup_that_does_not_exist_cannot_be_restored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["store", "restore", str(tmp_path / "none"), "-o", str(tmp_path / "copy")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
