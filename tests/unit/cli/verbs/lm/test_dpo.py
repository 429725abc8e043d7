"""`surefoot lm dpo` on a tiny model: trained, resumed, looked at."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from surefoot.cli.main import main

pytest.importorskip("transformers")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    from surefoot.lm.policy.tiny import make_tiny

    make_tiny(tmp_path / "model")
    rows = [{"prompt": f"ask {i}", "chosen": "aa bb", "rejected": "zz yy"} for i in range(12)]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SUREFOOT_RUNS", str(tmp_path / "runs"))
    return tmp_path


def test_a_run_is_trained_resumed_and_refuses_other_pairs(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["lm", "dpo", "--model", "model", "--pairs", "pairs.jsonl", "--name", "a", "--set", "steps=2"]
    assert main([*words, "--set", "prompts=3", "--set", "max_new_tokens=4", "--set", "dtype=float32"]) == 0
    assert "accuracy" in capsys.readouterr().out
    assert main(["lm", "dpo", "--resume", "a", "--set", "steps=3"]) == 0
    assert "3/3" in capsys.readouterr().out
    (place / "other.jsonl").write_text('{"prompt": "p", "chosen": "a", "rejected": "b"}\n' * 3)
    assert main(["lm", "dpo", "--resume", "a", "--pairs", "other.jsonl"]) == 2
    assert "the run was started with" in capsys.readouterr().err
    assert main(words) == 2
    assert "`surefoot lm dpo --resume a` continues it" in capsys.readouterr().err


def test_what_is_missing_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lm", "dpo", "--model", "m"]) == 64
    assert "--pairs is missing" in capsys.readouterr().err
