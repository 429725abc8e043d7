"""The tools from outside: the command line, a learning assistant, and kills while it stores and learns."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from surefoot.cli.main import main

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))


@pytest.mark.parametrize("what", ["store", "learn"])
def test_a_kill_loses_nothing_acknowledged_and_the_policy_loads_with_its_digits(tmp_path: Path, what: str):
    import tools_system

    for n, after in enumerate((0.1, 0.4)):
        directory = tmp_path / str(n)
        assert tools_system.kill_once(directory, what, after, seed=n) == {"lost": 0, "unloadable": 0, "other_digits": 0}


def test_the_demo_learns_the_shipped_questions(tmp_path: Path, capsys):
    argv = ["tools", "demo", "--rounds", "3", "--encoder", "hashing", "--dir", str(tmp_path / "d"), "--json"]
    assert main(argv) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["rounds"][-1] >= 0.85
    assert told["rounds"][-1] > told["rounds"][0]
    assert main(["tools", "report", str(tmp_path / "d"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["decisions"] == 3 * told["questions"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Queries of three kinds, by words."""
    words = {
        "weather": ("rain", "sun", "snow"),
        "music": ("song", "album", "band"),
        "timer": ("alarm", "minutes", "clock"),
    }
    rows = [(f"tell me about the {w} number {i}", label) for i in range(40) for label, ws in words.items() for w in ws]
    (tmp_path / "data").mkdir()
    lines = ["text,category", *(f"{text},{label}" for text, label in rows)]
    (tmp_path / "data" / "train.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "data"


def test_train_eval_report_and_replay_go_together(data: Path, tmp_path: Path, capsys):
    run = str(tmp_path / "run")
    assert main(["tools", "train", str(data), "--out", run, "--encoder", "hashing"]) == 0
    assert main(["tools", "train", str(data), "--out", run, "--encoder", "hashing"]) == 64, "it is not written over"
    capsys.readouterr()
    assert main(["tools", "eval", run, "--data", str(data), "--encoder", "hashing", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["success"] > 0.9
    assert main(["tools", "report", run, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["decisions"], len(told["tools"])) == (360, 3)
    assert main(["tools", "replay", run, "--encoder", "hashing", "--json"]) == 1, (
        "360 decisions are too few for a verdict"
    )
    assert json.loads(capsys.readouterr().out)["judgement"]["verdict"] == "hold"
    assert main(["telemetry", "validate", f"{run}/telemetry.ndjson"]) == 0
    assert main(["telemetry", "summary", f"{run}/telemetry.ndjson"]) == 0


def test_an_empty_data_directory_gets_one_sentence(tmp_path: Path, capsys):
    assert main(["tools", "train", str(tmp_path), "--out", str(tmp_path / "r"), "--encoder", "hashing"]) == 2
    assert "neither queries.jsonl nor any .csv" in capsys.readouterr().err
