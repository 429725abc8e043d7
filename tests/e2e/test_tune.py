"""A search in two processes of its own: interrupted, killed, gone on with."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("optuna")

ARGUMENTS = [
    "--seeds",
    "2",
    "--steps",
    "2048",
    "--search",
    "rungs=2",
    "--eval-episodes",
    "2",
    "--search",
    "finalists=0",
]
ARGUMENTS += ["--set", "rollout_steps=32", "--set", "envs=4", "--name", "hunt"]


def tune(runs: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "surefoot", "tune", "CartPole-v1", "--runs", str(runs), *more]
    quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(command, start_new_session=True, **quiet)


def finished(runs: Path) -> int:
    """Trials with a score, by the journal's own lines."""
    journal = runs / "hunt" / "study.journal"
    if not journal.exists():
        return 0
    lines = journal.read_text().replace(" ", "").splitlines()
    return sum('"op_code":6' in line and '"state":1,' in line for line in lines)


def wait_for(trials: int, runs: Path, child: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 300
    while finished(runs) < trials:
        assert child.poll() is None, child.communicate()[0]
        assert time.monotonic() < until, "no trial was finished"
        time.sleep(0.2)


def test_a_search_of_two_processes_survives_ctrl_c_and_a_kill(tmp_path: Path) -> None:
    child = tune(tmp_path, "--trials", "500", "--jobs", "2", *ARGUMENTS)
    wait_for(2, tmp_path, child)
    os.killpg(child.pid, signal.SIGINT)
    said, _ = child.communicate(timeout=300)
    assert child.returncode == 0, said
    first = json.loads((tmp_path / "hunt" / "trials.json").read_text())["trials"]
    done = {t["number"]: t["value"] for t in first if t["state"] == "complete"}
    assert len(done) >= 2
    assert (tmp_path / "hunt" / "best.yaml").exists()

    child = tune(tmp_path, "--trials", "500", "--resume", "--name", "hunt")
    wait_for(len(done) + 1, tmp_path, child)
    os.killpg(child.pid, signal.SIGKILL)
    child.wait(60)

    total = len(done) + 4
    child = tune(tmp_path, "--trials", str(total), "--resume", "--name", "hunt")
    said, _ = child.communicate(timeout=300)
    assert child.returncode == 0, said
    last = json.loads((tmp_path / "hunt" / "trials.json").read_text())["trials"]
    assert {t["number"]: t["value"] for t in last if t["number"] in done} == done
    assert not [t for t in last if t["state"] == "running"]
