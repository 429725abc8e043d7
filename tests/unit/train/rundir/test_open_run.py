"""Paths of checkpoints and of models by name."""

import dataclasses
from pathlib import Path

import pytest

from surefoot.envs.make import make_world
from surefoot.errors import CheckpointMissing, ConfigError, RunNotFound
from surefoot.train.rundir.open_run import checkpoint_path, find_model, read_run
from surefoot.train.rundir.rundir import RunDir
from surefoot.train.spec import make_spec


def test_a_checkpoint_is_named_latest_best_or_by_its_number(tmp_path: Path) -> None:
    for name in ("000012", "best"):
        (tmp_path / name).mkdir()
    paths = [checkpoint_path(tmp_path, which, "run") for which in ("latest", "best", "12")]
    assert paths == [tmp_path, tmp_path / "best", tmp_path / "000012"]


def test_a_missing_checkpoint_is_answered_with_those_that_exist(tmp_path: Path) -> None:
    (tmp_path / "000012").mkdir()
    with pytest.raises(CheckpointMissing, match="run has no checkpoint '13'; it has 000012"):
        checkpoint_path(tmp_path, "13", "run")
    with pytest.raises(CheckpointMissing, match="it must be latest, best"):
        checkpoint_path(tmp_path, "newest", "run")


def test_a_directory_that_is_no_run_may_be_a_saved_model(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    assert find_model(str(tmp_path / "model"), tmp_path) == tmp_path / "model"
    with pytest.raises(RunNotFound):
        find_model("nothing", tmp_path)


def test_a_prompt_run_names_the_verb_that_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = dataclasses.replace(make_spec("CartPole-v1", make_world("CartPole-v1").action), env="surefoot/Prompts-v0")
    monkeypatch.setattr(RunDir, "read_spec", lambda directory: spec.to_json())
    with pytest.raises(ConfigError, match="use `surefoot prompts eval mine`"):
        read_run(tmp_path / "mine", None)
