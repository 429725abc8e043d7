"""The index of runs: same rows as without it, read again when files change, and a selection by words."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from surefoot.errors import ConfigError
from surefoot.learn.checkpoint.atomic_files import RunLock
from surefoot.telemetry.writer import Recorder
from surefoot.train.rundir import run_index
from surefoot.train.rundir.run_index import INDEX, RunIndex, select
from surefoot.train.rundir.run_summary import row_of
from surefoot.train.rundir.rundir import RunDir


def make(root: Path, name: str, *, env: str = "CartPole-v1", score: float = 1.0, end: bool = True) -> RunDir:
    run = RunDir(root / name)
    run.path.mkdir()
    run.header.write_text(json.dumps({"spec": {"env": env}}))
    recorder = Recorder(run.telemetry, name)
    recorder.header(env=env, seed=0, config={})
    recorder.eval(returns=[score], lengths=[5])
    if end:
        recorder.close("finished", "")
    else:
        recorder.sync()
    return run


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(run_index, "_WORTHWHILE", 2)
    for number, (name, env, score) in enumerate(
        [("a", "CartPole-v1", 3.0), ("b", "Walker2d-v5", 1.0), ("walk", "X-v0", 2.0)]
    ):
        run = make(tmp_path, name, env=env, score=score)
        os.utime(run.header, (number, number))
    return tmp_path


def names(rows: list[dict[str, Any]]) -> str:
    return " ".join(row["run"] for row in rows)


def test_rows_are_those_of_the_records_with_and_without_the_file(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [row_of(RunDir(root / name)) for name in ("a", "b", "walk")]
    first = RunIndex(root).rows()
    assert [{k: row[k] for k in expected[0]} for row in first] == expected
    monkeypatch.setattr(run_index, "row_of", None)  # a record that did not change is not read again
    assert RunIndex(root).rows() == first


def test_a_record_that_changed_is_read_again_and_a_lost_or_broken_file_is_made_again(root: Path) -> None:
    RunIndex(root).rows()
    with Recorder(root / "a" / "telemetry.ndjson", "a") as recorder:
        recorder.eval(returns=[9.0], lengths=[5])
    assert RunIndex(root).rows()[0]["score"] == 9.0
    (root / INDEX).write_text("no JSON")
    assert names(RunIndex(root).rows()) == "a b walk"
    assert "walk" in json.loads((root / INDEX).read_text())


def test_a_run_is_running_only_while_its_lock_is_held(root: Path) -> None:
    run = make(root, "open", end=False)
    assert RunIndex(root).rows()[-1]["state"] == "stopped without an end"
    with RunLock(run.path):
        assert RunIndex(root).rows()[-1]["state"] == "running"
    assert RunIndex(root).rows()[-1]["state"] == "stopped without an end"


def test_no_directory_has_no_runs(tmp_path: Path) -> None:
    assert RunIndex(tmp_path / "none").rows() == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "a b walk"),
        (["walk"], "b walk"),  # part of a name or of an environment, in any case
        (["walk", "env=*-v0"], "walk"),
        (["sort=score"], "b walk a"),
        (["sort=-score", "limit=1"], "b"),
        (["limit=2"], "b walk"),
        (["state=fin*"], "a b walk"),
        (["?"], "a b"),
    ],
)
def test_words_select_and_sort(root: Path, words: list[str], expected: str) -> None:
    assert names(select(RunIndex(root).rows(), words)) == expected


@pytest.mark.parametrize("word", ["colour=red", "sort=colour", "limit=0", "limit=many"])
def test_a_word_that_means_nothing_is_answered_with_what_would(root: Path, word: str) -> None:
    with pytest.raises(ConfigError, match="columns are run, env|must be one of run, env|whole number"):
        select(RunIndex(root).rows(), [word])
