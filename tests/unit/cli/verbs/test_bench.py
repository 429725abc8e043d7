"""`surefoot bench`: what it prints and what it refuses."""

from __future__ import annotations

import json

import pytest

from surefoot.cli.main import main

QUICK = (
    "--set",
    "envs=2",
    "--set",
    "rollout_steps=16",
    "--set",
    "epochs=1",
    "--set",
    "minibatch_size=16",
    "--steps",
    "64",
)


def test_the_picture_has_every_part_the_path_and_advice(capsys: pytest.CaptureFixture[str]):
    assert main(["bench", "CartPole-v1", *QUICK]) == 0
    said = capsys.readouterr()
    assert "measuring CartPole-v1" in said.err
    lines = said.out.splitlines()
    assert "CartPole-v1, surefoot's: 2 envs × 16 steps, 1 epoch of minibatches of 16" in lines[0]
    assert "64 steps, 2 updates, 4 gradient steps" in lines[1]
    assert [line.split()[0] for line in lines[2:6]] == ["env", "policy", "update", "rest"]
    assert all(line.count("█") + line.count("░") == 40 for line in lines[2:6])
    assert lines[6].split()[:2] in (["path", "torch:"], ["path", "native:"])
    assert "GFLOP/s" in lines[7]
    assert lines[8].startswith("→ ")


def test_json_says_the_same_in_numbers(capsys: pytest.CaptureFixture[str]):
    assert main(["bench", "CartPole-v1", "--json", "--env-backend", "gymnasium", *QUICK]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["steps"], told["updates"], told["backend"]) == (64, 2, "gymnasium")
    assert told["steps_per_second"] == pytest.approx(64 / told["wall_seconds"])
    assert told["steps_per_cpu_second"] == pytest.approx(64 / told["cpu_seconds"])
    assert told["advice"]


@pytest.mark.parametrize("words", [["--seconds", "0"], ["--seconds", "-1"], ["--seconds", "nan"]])
def test_nothing_to_measure_is_a_wrong_command_line(words: list[str], capsys: pytest.CaptureFixture[str]):
    assert main(["bench", "CartPole-v1", *words]) == 64
    assert "must be positive" in capsys.readouterr().err


def test_settings_are_those_of_train(capsys: pytest.CaptureFixture[str]):
    assert main(["bench", "CartPole-v1", "--set", "epoch=1"]) == 2
    assert "did you mean" in capsys.readouterr().err
