"""The tools from outside: the command line, a learning assistant, and kills while it stores and learns."""

from __future__ import annotations

import html
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from surefoot.cli.main import main
from surefoot.decide.evaluation.summary import page_of, summary_of
from surefoot.decide.tools.toolbox.notes import LocalNotes

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))


@pytest.mark.parametrize("what", ["store", "learn"])
def test_a_kill_loses_nothing_acknowledged_and_the_policy_loads_with_its_digits(tmp_path: Path, what: str):
    import tools_system

    words = 0
    for n, after in enumerate((0.0, 0.02, 0.05, 0.1, 0.3, 0.6)):
        told = tools_system.kill_once(tmp_path / str(n), what, after, seed=n)
        assert (told["lost"], told["unloadable"], told["other_digits"]) == (0, 0, 0)
        words += told["stored" if what == "store" else "saved"]
    assert words > 6, "it was killed at work, not before it"


def test_the_demo_learns_the_shipped_questions(tmp_path: Path, capsys):
    argv = ["tools", "demo", "--rounds", "3", "--encoder", "hashing", "--dir", str(tmp_path / "d"), "--json"]
    assert main(argv) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["rounds"][-1] >= 0.85
    assert told["rounds"][-1] > told["rounds"][0]
    assert main(["tools", "report", str(tmp_path / "d"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["decisions"] == 3 * told["questions"]


def test_a_conversation_asks_rates_explains_and_refuses_what_is_no_rating(tmp_path: Path, capsys, monkeypatch):
    lines = ["3", "why", "Please note: buy milk", "why", "9", "0", "tools", "", "help", "quit"]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines) + "\n"))
    assert main(["tools", "demo", "--encoder", "hashing", "--dir", str(tmp_path / "d")]) == 0
    told = capsys.readouterr().out
    for sentence in ("ask something first", "noted: buy milk", "9 is not a rating", "100% →", "Query the database"):
        assert sentence in told
    notes = LocalNotes(tmp_path / "d" / "notes.sqlite")
    assert len(notes) == 1, "looking at how it would choose now runs no tool"
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert main(["tools", "demo", "--dir", str(tmp_path / "d")]) == 0, "the encoder is the one it began with"
    assert "continues after 1 earlier" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "code", "sentence"),
    [
        (["demo", "--rounds", "-1"], 64, "--rounds is -1"),
        (["demo", "--json"], 64, "--json needs --rounds"),
        (["demo", "--rounds", "1", "--db", "x"], 64, "shipped questions"),
        (["demo", "--docs", "NONE", "--encoder", "hashing"], 2, "NONE is not a directory"),
        (["demo", "--db", "TEXT", "--encoder", "hashing"], 2, "could not be read as a SQLite database"),
        (["train", "DATA", "--out", "OUT", "--count", "0"], 64, "--count is 0"),
        (["train", "DATA", "--out", "TEXT/run", "--encoder", "hashing"], 2, "could not be created"),
        (["train", "DATA", "--topics", "NONE", "--out", "OUT", "--encoder", "hashing"], 2, "NONE must be"),
        (["eval", "NONE", "--data", "DATA"], 2, "holds no trial"),
        (["replay", "NONE"], 2, "holds no trial"),
        (["replay", "NONE", "--last", "0"], 64, "--last is 0"),
        (["report", "NONE"], 2, "neither a trial nor an agent's runs"),
    ],
)
def test_what_cannot_work_gets_one_sentence(argv, code, sentence, data: Path, tmp_path: Path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("TEXT").write_text("hello\n")
    Path("DATA").symlink_to(data)
    assert main(["tools", *argv]) == code
    told = capsys.readouterr().err.strip()
    assert sentence in told
    assert "Traceback" not in told


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
    assert main(["tools", "eval", run, "--data", str(data), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["success"] > 0.9
    assert main(["tools", "report", run, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["decisions"], len(told["tools"])) == (360, 3)
    assert not (tmp_path / "run" / "report-tools.html").exists()
    assert main(["tools", "report", run]) == 0
    assert "Learning curve" in (tmp_path / "run" / "report-tools.html").read_text()
    capsys.readouterr()
    assert main(["tools", "replay", run, "--json"]) == 1, "360 decisions are too few for a verdict"
    assert json.loads(capsys.readouterr().out)["judgement"]["verdict"] == "hold"
    assert main(["telemetry", "validate", f"{run}/telemetry.ndjson"]) == 0
    assert main(["telemetry", "summary", f"{run}/telemetry.ndjson"]) == 0


def test_an_empty_data_directory_gets_one_sentence(tmp_path: Path, capsys):
    assert main(["tools", "train", str(tmp_path), "--out", str(tmp_path / "r"), "--encoder", "hashing"]) == 2
    assert "neither queries.jsonl nor any .csv" in capsys.readouterr().err


def browser() -> str:
    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if not found:
        pytest.skip("no Chromium: $CHROMIUM or PATH")
    return found


LOOK = """<script>
const box = e => e.getBoundingClientRect(), seen = e => box(e).width > 0 && box(e).height > 0
const told = {sections: [...document.querySelectorAll("section")].map(s => s.id), overflow: 0, hidden: 0, outside: 0}
for (const s of document.querySelectorAll("section")) if (!seen(s)) told.hidden++
for (const t of document.querySelectorAll("svg text")) {
  const around = box(t.closest("svg"))
  if (box(t).left < around.left - 1 || box(t).right > around.right + 1) told.outside++
}
told.overflow = document.documentElement.scrollWidth - window.innerWidth
document.body.dataset.told = JSON.stringify(told)
</script>"""
"""What somebody who looks at the page would see, written where a dump of the document shows it."""


def test_the_report_is_a_page_that_a_browser_shows_whole(tmp_path: Path):
    rng = np.random.default_rng(0)
    names = ["weather", "music", "<b>timer</b>", *(f"a tool with a rather long name, number {i}" for i in range(20))]
    rows = [
        {"chosen": names[a], "right": names[b], "nearest": names[c], "reward": float(a == b), "probability": 0.9}
        | {"confidence": float(rng.random())}
        for a, b, c in rng.integers(0, len(names), (400, 3))
    ]
    page = tmp_path / "page.html"
    written = page_of(summary_of(rows), "</title><script>alert(1)</script>")
    assert "<b>timer" not in written
    assert "<script" not in written
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    assert policy in written
    page.write_text(written.replace(policy, "default-src 'unsafe-inline'").replace("</body>", f"{LOOK}</body>"))
    command = [browser(), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    command += ["--window-size=1200,2200", "--dump-dom", page.as_uri()]
    document = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    found = re.search(r'data-told="([^"]*)"', document)
    assert found, "the page did not load to its end"
    told = json.loads(html.unescape(found[1]))
    assert told["sections"] == ["curve", "regret", "calibration", "coverage", "mistakes", "options", "confusion"]
    assert (told["hidden"], told["outside"]) == (0, 0)
    assert told["overflow"] <= 0
