"""`surefoot telemetry …` from the command line: exit codes, pipes, JSON."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from surefoot.cli.main import VERBS, main

SAMPLES = Path(__file__).parents[4] / "samples" / "telemetry"
FULL = str(SAMPLES / "v2.0" / "full.ndjson")
OLD = str(SAMPLES / "v1.1" / "full.ndjson")
CRASH = str(SAMPLES / "v2.0" / "crash.ndjson")


@pytest.fixture(autouse=True)
def _runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SUREFOOT_RUNS", str(tmp_path / "runs"))
    monkeypatch.chdir(tmp_path)


def said(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    code = main(["telemetry", *argv])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_family_lists_its_verbs(capsys: pytest.CaptureFixture[str]):
    code, out, _ = said(capsys, "--help")
    assert code == 0
    assert all(name in out for name in VERBS if name.startswith("telemetry "))
    assert said(capsys)[0] == 0


@pytest.mark.parametrize("verb", [name.split()[1] for name in VERBS if name.startswith("telemetry ")])
def test_every_verb_teaches(capsys: pytest.CaptureFixture[str], verb: str):
    code, out, _ = said(capsys, verb, "--help")
    assert code == 0
    assert f"usage: surefoot telemetry {verb}" in out


@pytest.mark.parametrize(
    ("argv", "code", "sentence"),
    [
        (["valdate"], 64, "did you mean `surefoot telemetry validate`"),
        (["zzz"], 64, "`surefoot telemetry --help` lists"),
        (["validate"], 64, "no FILE given"),
        (["validate", FULL, "--drift", "3"], 64, "--drift needs --baseline"),
        (["validate", "gone.ndjson"], 2, "no run called 'gone.ndjson'"),
        (["validate", FULL], 0, ""),
        (["validate", CRASH], 1, ""),
        (["validate", OLD, "--baseline", OLD], 0, ""),
        (["validate", OLD, "--baseline", OLD, "--drift", "1"], 1, ""),
        (["validate", OLD, "--baseline", OLD, "--drift", "100"], 0, ""),
        (["summary", FULL], 0, ""),
        (["summary", FULL, "--last", "0"], 64, "at least 1"),
        (["summary", "gone"], 2, "no run called"),
    ],
)
def test_exit_codes_and_sentences(capsys: pytest.CaptureFixture[str], argv: list[str], code: int, sentence: str):
    got, _, err = said(capsys, *argv)
    assert got == code
    assert sentence in err


def test_a_pipe_is_validated(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(Path(FULL).read_bytes() + b"x\n")))
    code, out, _ = said(capsys, "validate", "-")
    assert code == 1
    assert "<stdin>:31: not JSON" in out


def test_validate_as_json_is_for_scripts(capsys: pytest.CaptureFixture[str]):
    code, out, _ = said(capsys, "validate", CRASH, FULL, "--json", "--baseline", FULL)
    told = json.loads(out)
    assert (code, told["valid"], [file["errors"] for file in told["files"]]) == (1, False, [1, 0])
    assert told["files"][0]["mistakes"][0]["line"] == 4
    assert told["drift"][FULL]["loss"]["far"] is False


def test_a_warning_counts_only_if_strict(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    file = tmp_path / "x.ndjson"
    file.write_bytes(b"".join(Path(FULL).read_bytes().splitlines(keepends=True)[:-1]))
    assert said(capsys, "validate", str(file))[0] == 0
    assert said(capsys, "validate", str(file), "--strict")[0] == 1


def test_many_mistakes_are_not_all_printed(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    file = tmp_path / "x.ndjson"
    file.write_text("x\n" * 50)
    _, out, _ = said(capsys, "validate", str(file), "--show", "3")
    assert len(out.splitlines()) == 4
    assert "50 errors; 47 not shown, pass --show 50" in out


def test_a_summary_with_an_open_error_is_a_finding(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    lines = Path(FULL).read_text().splitlines()
    finding = next(line for line in lines if '"finding"' in line).replace('"warn"', '"error"')
    file = tmp_path / "x.ndjson"
    file.write_text("\n".join([lines[0], finding, ""]))
    code, out, _ = said(capsys, "summary", str(file), "--json")
    assert code == 1
    assert json.loads(out)["findings"][0]["patch"] == {"lr": 1e-4, "target_kl": 0.02}


@pytest.mark.parametrize(("form", "start"), [("text", "walk-s1"), ("markdown", "### PPO"), ("json", "{")])
def test_a_summary_has_three_forms(capsys: pytest.CaptureFixture[str], form: str, start: str):
    assert said(capsys, "summary", FULL, "--format", form)[1].startswith(start)
