"""`surefoot tools`: options that contradict each other, and directories without a log."""

from __future__ import annotations

from pathlib import Path

import pytest

from surefoot.cli.main import main


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["demo", "--rounds", "-1"], "--rounds is -1; it must be at least 0"),
        (["demo", "--json"], "--json needs --rounds"),
        (["demo", "--rounds", "1", "--db", "x"], "leave --docs and --db out"),
        (["train", "data", "-o", "out", "--count", "0"], "--count is 0; it must be at least 1"),
        (["replay", "none", "--last", "0"], "--last is 0; it must be at least 1"),
    ],
)
def test_options_that_cannot_work_are_refused(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tools", *words]) == 64
    assert message in capsys.readouterr().err


def test_an_existing_log_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from surefoot.decide.evaluation.trial import LOG

    (tmp_path / LOG).write_text("")
    assert main(["tools", "train", "data", "-o", str(tmp_path)]) == 64
    assert "already has a log" in capsys.readouterr().err


def test_a_directory_without_a_log_has_no_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tools", "report", str(tmp_path)]) == 2
    assert not list(tmp_path.iterdir())
