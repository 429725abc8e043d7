"""`surefoot train` and `resume`: how options become a spec, and which combinations are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from surefoot.cli.main import main
from surefoot.cli.usage import Usage
from surefoot.cli.verbs.train import TrainArgs, training_of


def test_set_wins_over_config_and_config_over_the_preset(tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    config.write_text("lr: 0.25\nclip: 0.25\nseed: 7\ntotal_steps: 900\n")
    _, spec = TrainArgs(env="CartPole-v1", config=config, set=("clip=0.5",)).resolve()
    assert (spec.ppo.to_json()["lr"], spec.ppo.to_json()["clip"]) == (0.25, 0.5)
    assert (spec.seed, spec.total_steps) == (7, 900)
    _, spec = TrainArgs(env="CartPole-v1", config=config, seed=1, steps=80).resolve()
    assert (spec.seed, spec.total_steps) == (1, 80)


def test_options_of_the_environment_reach_the_spec() -> None:
    _, spec = TrainArgs(env="Pendulum-v1", env_arg=("g=5.0",), set=("workers=0",), rollout_workers="local:2").resolve()
    assert spec.env_kwargs == {"g": 5.0}
    assert (spec.collect.workers, spec.rollouts) == (0, "local:2")


def test_overlap_needs_rollout_workers() -> None:
    make, spec = TrainArgs(env="CartPole-v1", set=("overlap=true",)).resolve()
    with pytest.raises(Usage, match="add --rollout-workers local:2"):
        training_of(spec, make)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["train", "CartPole-v1", "--ddp"], "--ddp needs --name"),
        (["train", "CartPole-v1", "--record-minibatches", "2"], "--record-minibatches is 2"),
        (["resume", "none", "--doctor", "act"], "--doctor act works from the start of a run only"),
    ],
)
def test_options_that_cannot_work_are_refused(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(argv) == 64
    assert message in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
