"""`surefoot town accept`: options of the test, and the whole of it at the smallest size."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from surefoot.cli.main import main, read_arguments


def test_options_have_defaults_and_earlier_names() -> None:
    args = read_arguments("town accept", ["queue_conflict", "--set", "updates=2", "--output", "x"])
    assert (args.options.updates, args.options.towns, args.out) == (2, 16, Path("x"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--cycles", "0"], "--cycles is 0; it must be at least 1"),
        (["--set", "updates=0"], "--updates is 0; it must be at least 1"),
        (["--set", "town=3"], "did you mean towns"),
    ],
)
def test_a_test_without_training_is_refused(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["town", "accept", "queue_conflict", *words]) == 64
    assert message in capsys.readouterr().err


def test_one_cycle_writes_all_files_and_the_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = [word for pair in ("updates=1", "towns=2", "episodes=2", "capture_ticks=8") for word in ("--set", pair)]
    code = main(["town", "accept", "queue_conflict", "-o", str(tmp_path), "--cycles", "1", *small])
    printed = capsys.readouterr().out
    assert ("PASS" if code == 0 else "FAIL") in printed.splitlines()[-1]
    assert "ok   samples" in printed
    names = {path.name for path in tmp_path.iterdir()}
    assert {"ppo.jsonl", "watch.jsonl", "baselines.json", "summary.md", "cycle_000"} <= names
    assert set(json.loads((tmp_path / "baselines.json").read_text())) >= {"random", "script", "before", "after"}
