"""`surefoot lm eval` on a tiny model."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from surefoot.cli.main import main
from surefoot.cli.usage import Usage
from surefoot.cli.verbs.lm.evaluate import _ask

pytest.importorskip("transformers")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    from surefoot.lm.policy.tiny import make_tiny

    make_tiny(tmp_path / "one")
    (tmp_path / "p.txt").write_text("hello\nwho are you\n")
    (tmp_path / "tie_judges.py").write_text("def vowels(response):\n    return sum(c in 'aeiou' for c in response)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("SUREFOOT_RUNS", str(tmp_path / "runs"))
    return tmp_path


WORDS = ["lm", "eval", "one", "one", "--prompts", "p.txt", "--tokens", "6"]


def test_a_model_ties_with_itself(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*WORDS, "--judge", "tie_judges:vowels", "-o", "side.html"]) == 0
    assert "2 ties" in capsys.readouterr().out
    assert "hello" in (place / "side.html").read_text()
    assert main([*WORDS, "--judge", "tie_judges:vowels", "--page", "side.html", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ties"] == 2


def test_a_person_is_asked_and_the_end_of_input_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("2\n\n"))
    assert _ask("hello", "one", "other") == 1
    assert _ask("hello", "one", "other") is None
    with pytest.raises(Usage, match="pass --judge"):
        _ask("hello", "one", "other")
