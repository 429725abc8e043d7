"""A record handed to the real W&B, in a process of its own as it starts others; only where it is installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from surefoot.telemetry.foreign.wandb_file import read_wandb
from surefoot.telemetry.writer import Recorder


def test_the_real_wandb_keeps_a_run_offline(tmp_path: Path):
    pytest.importorskip("wandb")
    with Recorder(tmp_path, "walk") as recorder:
        recorder.header(env="X-v0", seed=0, config={"ppo": {"lr": 3e-4}})
        recorder.update(env_steps=64, updates=1, m={"value_loss": 2.0})
    command = [sys.executable, "-m", "surefoot", "telemetry", "export", str(tmp_path), "--to", "wandb"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    (kept,) = (tmp_path / "wandb" / "wandb").glob("offline-run-*/run-*.wandb")
    assert list(read_wandb(kept, {}))
    told = kept.read_bytes()
    assert b"train/value_loss" in told
    assert b"ppo" in told
