"""`surefoot prompts rlaif`: a judge, corrected by a person."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from surefoot.cli.main import main


def test_a_judge_is_corrected_by_a_person(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "p.txt").write_text("\n".join(f"Write {x}." for x in ("a poem", "code", "a report", "an advert")))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO("what\nb\n" * 40))
    asked = ["prompts", "rlaif", "--prompts", "p.txt", "--rounds", "2", "--human-every", "1", "--evaluations", "60"]
    told = main([*asked, "--name", "r", "--runs", str(tmp_path / "runs")])
    said = capsys.readouterr().out
    assert told == 0
    assert "round 2 of 2" in said
    assert "verdicts were corrected" in said
    assert main(["prompts", "improve", "Write a song.", "--run", "r", "--runs", str(tmp_path / "runs")]) == 0


@pytest.mark.parametrize(
    ("options", "why"),
    [(["--rounds", "0"], "--rounds is 0; it must be at least 1"), (["--judge", "nobody"], "MODULE:FUNCTION")],
)
def test_a_judging_that_cannot_be_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], why: str
):
    (tmp_path / "p.txt").write_text("Write a poem.")
    assert main(["prompts", "rlaif", "--prompts", str(tmp_path / "p.txt"), "--human-every", "0", *options]) == 64
    assert why in capsys.readouterr().err
