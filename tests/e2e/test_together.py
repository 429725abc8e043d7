"""Two processes that learn as one: the weights of one process, and a lost process that costs nothing learned."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

PROGRAM = Path(__file__).with_name("together_program.py")
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


def environment() -> dict[str, str]:
    return os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}


def test_two_processes_give_the_weights_of_one_on_the_same_batch(tmp_path: Path):
    """Normaliser, value and reward scale, advantage moments, KL stop and clipping are those of all streams."""
    out = tmp_path / "out.json"
    subprocess.run([*TORCHRUN, str(PROGRAM), str(out)], check=True, timeout=300, env=environment())
    compared = json.loads(out.read_text())
    assert set(compared) == {"plain", "memory", "sequence"}
    for kind, said in compared.items():
        assert said["difference"] <= 1e-6, kind
        assert said["samples"] == [96, 96], kind
        assert said["minibatches"][0] == said["minibatches"][1], kind
        assert said["stopped_early"][0] == said["stopped_early"][1], kind
        assert any(said["stopped_early"][0]), kind  # so that the stop was tried
        assert said["first_ratio_error"] <= 1e-5, kind
        for name in ("approx_kl", "policy_loss"):
            assert abs(said[name][0] - said[name][1]) < 1e-6, (kind, name)


def test_a_killed_process_is_started_again_from_the_checkpoint(tmp_path: Path):
    args = [
        "train",
        "CartPole-v1",
        "--ddp",
        "--name",
        "x",
        "--runs",
        str(tmp_path),
        "-n",
        "8192",
        "--display",
        "quiet",
    ]
    args += ["--checkpoint-every", "1024", "--eval-every", "0", "--set", "envs=8", "--set", "rollout_steps=64"]
    command = [*TORCHRUN, "--max-restarts=2", "-m", "surefoot", *args]
    with subprocess.Popen(command, env=environment(), start_new_session=True) as process:
        try:
            latest = tmp_path / "x" / "checkpoints" / "latest"
            until = time.monotonic() + 240
            while not latest.exists():
                assert process.poll() is None, "ended before its first checkpoint"
                assert time.monotonic() < until, "no checkpoint"
                time.sleep(0.05)
            os.kill(_child(process.pid, rank=1), signal.SIGKILL)
            assert process.wait(timeout=240) == 0
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    lines = [json.loads(line) for line in (tmp_path / "x" / "telemetry.ndjson").read_text().splitlines()]
    updates = [line["updates"] for line in lines if line["kind"] == "update"]
    assert updates == sorted(set(updates)), "nothing is in the record twice"
    assert lines[-1]["env_steps"] == 8192
    assert sum(line["kind"] == "run" for line in lines) == 2  # begun, and gone on with


def _child(parent: int, *, rank: int) -> int:
    """The process of that rank, by what its environment says."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            status, said = (process / "status").read_text(), b"\0" + (process / "environ").read_bytes()
        except OSError:
            continue
        if f"PPid:\t{parent}\n" in status and f"\0RANK={rank}\0".encode() in said:
            return int(process.name)
    raise AssertionError(f"no process of rank {rank}")
