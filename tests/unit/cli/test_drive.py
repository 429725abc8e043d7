"""What training verbs share: the doctor's modes, telemetry options, short settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from surefoot.cli.drive import brief, live_doctor, open_mirrors, print_longer, telemetry_options
from surefoot.cli.usage import Usage
from surefoot.cli.verbs.train import TrainArgs


def test_the_doctor_is_off_on_or_prints_everything() -> None:
    assert live_doctor("off") is None
    for mode, at_length in (("on", False), ("full", True), ("act", False)):
        doctor = live_doctor(mode)  # pyright: ignore[reportArgumentType]
        assert doctor is not None
        assert doctor.at_length == at_length


def test_the_rate_of_recorded_minibatches_is_a_share() -> None:
    assert telemetry_options("off", 0.5).record is False
    assert telemetry_options("as-before", 1.0).record is None
    with pytest.raises(Usage, match="--record-minibatches is 2; it is a share"):
        telemetry_options("on", 2.0)


def test_the_flat_log_is_the_only_mirror_without_a_tool(tmp_path: Path) -> None:
    assert open_mirrors(tmp_path, (), None) == []
    mirrors = open_mirrors(tmp_path, (), tmp_path / "ppo.jsonl")
    assert [type(mirror).__name__ for mirror in mirrors] == ["FlatMirror"]


def test_brief_settings_write_schedules_as_rl_zoo_does() -> None:
    _, spec = TrainArgs(env="CartPole-v1", set=("lr=lin_0.5", "clip=0.25", "net_arch=8,4")).resolve()
    short = brief(spec)
    assert (short["lr"], short["clip"]) == ("lin_0.5", "0.25")
    assert short["net"].startswith("8x4 ")


def test_a_run_that_rollouts_make_longer_is_announced(capsys: pytest.CaptureFixture[str]) -> None:
    print_longer(TrainArgs(env="CartPole-v1", steps=100, set=("n_steps=512", "n_envs=4")).resolve()[1])
    assert "trains 2,048 steps instead of 100: a rollout is 4 envs × 512 steps" in capsys.readouterr().err
    print_longer(TrainArgs(env="CartPole-v1", steps=100_000).resolve()[1])
    assert capsys.readouterr().err == ""
