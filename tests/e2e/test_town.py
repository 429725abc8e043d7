"""Towns end to end: they learn, survive kill -9 to the bit, and are accepted or not."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from surefoot.cli.main import main
from surefoot.learn.checkpoint.checkpoint import load_checkpoint
from surefoot.town.scenarios.scenario import load_scenario
from surefoot.town.training.measure import measure_behaviour, measure_policy
from surefoot.town.training.spec import town_spec, town_training

SMALL = ["--towns", "4", "--rollout-ticks", "20", "--eval-every", "0", "--display", "quiet", "--set", "hidden=16"]


def weights(run: Path) -> dict[str, np.ndarray]:
    return load_checkpoint(run / "checkpoints").parts["weights"]


def command(runs: Path, *more: str) -> list[str]:
    words = [
        "town",
        "train",
        "queue_conflict",
        "--mode",
        "mixed",
        *SMALL,
        "--epochs",
        "60",
        "--checkpoint-every",
        "240",
    ]
    return [sys.executable, "-m", "surefoot.cli.main", *words, "--runs", str(runs), *more]


def test_a_mixed_run_killed_in_mid_cycle_ends_with_the_weights_of_one_that_was_not(tmp_path: Path) -> None:
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(command(tmp_path, "--name", "whole"), env=env, check=True, capture_output=True)
    victim = subprocess.Popen(command(tmp_path, "--name", "cut"), env=env, stdout=subprocess.DEVNULL)
    checkpoints, deadline = tmp_path / "cut" / "checkpoints", time.monotonic() + 120
    while len(list(checkpoints.glob("0*"))) < 2 and victim.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    assert victim.returncode == -signal.SIGKILL, "it was through before it could be killed"
    subprocess.run(command(tmp_path, "--resume", "cut"), env=env, check=True, capture_output=True)
    straight, resumed = weights(tmp_path / "whole"), weights(tmp_path / "cut")
    assert straight.keys() == resumed.keys()
    for name, array in straight.items():
        assert np.array_equal(array, resumed[name]), name


def test_a_short_acceptance_passes_and_leaves_its_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--cycles", "2", "--set", "updates=8", "--set", "towns=8", "--set", "episodes=16"]
    assert main(["town", "accept", "employment_punctuality", "-o", str(tmp_path), *small]) == 0
    assert "PASS" in capsys.readouterr().out
    report = (tmp_path / "summary.md").read_text()
    assert "# Acceptance of employment_punctuality: PASS" in report
    assert set(json.loads((tmp_path / "baselines.json").read_text())) >= {"random", "script", "before", "after"}


def test_a_town_learns_more_than_chance_and_more_than_nothing(tmp_path: Path) -> None:
    scenario = load_scenario("employment_punctuality")
    training = town_training(town_spec(scenario, settings={"seed": 100}, steps=160_000, towns=32, eval_every=0))
    for _ in training:
        pass
    mine = measure_policy(training.policy, scenario, 32, seed=99)
    chance = measure_behaviour(scenario, "random", 32, 99)
    assert mine["punctuality"].mean() > 0.6
    assert mine["return"].mean() > chance["return"].mean() + 1.0


def test_samples_say_how_they_came_about(tmp_path: Path) -> None:
    """Captured, then captured again from what the manifest says: the same digests."""
    from surefoot.town.scenarios.scenario import Scenario
    from surefoot.town.training.capture import capture_behaviour

    assert main(["town", "capture", "queue_conflict", "-o", str(tmp_path), "--policy", "random", "--ticks", "30"]) == 0
    manifest = json.loads((tmp_path / "rollout_sample_manifest.json").read_text())
    about = manifest["metadata"]
    again = capture_behaviour(
        Scenario.from_json(about["scenario"]), about["behaviour"], about["ticks"], seed=about["seed"]
    )
    assert [sample.digest() for sample in again.samples] == [entry["sha256"] for entry in manifest["samples"]]
