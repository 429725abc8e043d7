"""`surefoot runs`, `eval`, `report` and `play` without a trained policy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from surefoot.cli.main import main
from surefoot.telemetry.writer import Recorder


def test_no_runs_are_an_empty_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "--runs", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


@pytest.mark.parametrize("verb", ["eval", "play", "report", "record"])
def test_a_run_that_does_not_exist_is_one_line(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "gone", "--runs", str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "no run called 'gone'" in line


def test_a_report_needs_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report"]) == 64
    assert "no RUN given" in capsys.readouterr().err


def test_telemetry_view_writes_the_same_page_as_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Recorder(tmp_path / "r", "r") as recorder:
        recorder.header(env="x", seed=0, config={})
        recorder.update(env_steps=1, updates=1, m={"loss": 1.0})
    pages = [tmp_path / "a.html", tmp_path / "b.html"]
    assert main(["report", str(tmp_path / "r"), "-o", str(pages[0]), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["page"] == str(pages[0])
    assert main(["telemetry", "view", str(tmp_path / "r"), "-o", str(pages[1])]) == 0
    assert pages[0].read_text() == pages[1].read_text()


def test_lines_in_a_pipe_are_complete(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name, env = "a-name-" + "x" * 60, "an-environment-" + "y" * 60
    (tmp_path / name).mkdir()
    (tmp_path / name / "run.json").write_text("{}")
    with Recorder(tmp_path / name / "telemetry.ndjson", name) as recorder:
        recorder.header(env=env, seed=0, config={})
        recorder.update(env_steps=1, updates=1, m={"loss": 1.0})
    assert main(["runs", "--runs", str(tmp_path)]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("a-name-"))
    assert name in line
    assert env in line
