"""`surefoot tune` from the command line."""

from __future__ import annotations

import json

import pytest
import yaml

from surefoot.cli.main import main

pytest.importorskip("optuna")

SMALL = ["--steps", "256", "--seeds", "2", "--search", "rungs=2", "--eval-episodes", "2", "--search", "finalists=1"]
SMALL += ["--set", "rollout_steps=16", "--set", "envs=4", "--set", "epochs=2"]


def test_a_search_leaves_a_config_that_train_takes(tmp_path, capsys):
    runs = ["--runs", str(tmp_path)]
    code = main(["tune", "CartPole-v1", "--trials", "3", "--name", "hunt", *runs, *SMALL])
    said = capsys.readouterr().out
    assert code == 0
    assert "trial 0" in said
    best = tmp_path / "hunt" / "best.yaml"
    assert yaml.safe_load(best.read_text())["rollout_steps"] == 16
    assert (tmp_path / "hunt" / "report.html").exists()
    assert main(["train", "CartPole-v1", "--config", str(best), "--dry-run"]) == 0


def test_resume_goes_on_with_what_was_searched(tmp_path, capsys):
    runs = ["--runs", str(tmp_path), "--json"]
    main(["tune", "CartPole-v1", "--trials", "2", *runs, *SMALL])
    first = json.loads(capsys.readouterr().out)
    main(["tune", "CartPole-v1", "--trials", "4", "--resume", *runs])
    second = json.loads(capsys.readouterr().out)
    assert second["directory"] == first["directory"]
    assert (first["trials"], second["trials"]) == (2, 4)
    assert second["settings"]["total_steps"] == 256


def test_there_must_be_something_to_resume(tmp_path, capsys):
    assert main(["tune", "CartPole-v1", "--resume", "--runs", str(tmp_path)]) == 64
    assert "no search of CartPole-v1" in capsys.readouterr().err


def test_a_space_that_cannot_be_read_leaves_no_directory_with_a_plan(tmp_path, capsys):
    assert main(["tune", "CartPole-v1", "--space", str(tmp_path / "no.yaml"), "--runs", str(tmp_path / "runs")]) == 2
    assert "cannot read ranges" in capsys.readouterr().err
    assert not list((tmp_path / "runs").rglob("tune.json"))
