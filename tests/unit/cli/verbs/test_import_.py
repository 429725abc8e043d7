"""`surefoot import`: where the result goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from surefoot.cli.main import main


def test_a_model_needs_an_environment_or_a_directory(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", "sb3", "model.zip"]) == 64
    assert "pass --env ENV to create a run, or -o DIR" in capsys.readouterr().err


def test_an_entry_of_the_zoo_becomes_a_config_that_train_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ppo.yml").write_text("CartPole-v1:\n  n_timesteps: 1e5\n  learning_rate: lin_0.5\n  n_steps: 32\n")
    config = tmp_path / "config.yaml"
    assert main(["import", "zoo", str(tmp_path / "ppo.yml"), "CartPole-v1", "-o", str(config)]) == 0
    assert main(["train", "CartPole-v1", "--config", str(config), "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert "total_steps: 100000" in printed
    assert "rollout_steps: 32" in printed
