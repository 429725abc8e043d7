"""K3c: one of two processes that learn as one is killed; torchrun starts both anew, and the weights must not show it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from campaign.frame import Block, Found, dice, from_tests

FORGETS = "restarted processes begin other episodes"
MUTANT = """
from surefoot.train.collect.collector import Collector
Collector.set_state = lambda self, state: None
"""
PROGRAM = (
    "import sys\nfrom surefoot.__main__ import main\nif __name__ == '__main__':\n    sys.exit(main(sys.argv[1:]))\n"
)
UPDATES, EVERY, ROLLOUT = 60, 4, 4 * 32
KILLS_A_RUN = 2
PATIENCE = 240.0


def check(count: int, defect: str = "") -> Found:
    together, rng, found = from_tests("e2e/test_together.py"), dice(5), Found()
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        (root / "program.py").write_text((MUTANT if defect else "") + PROGRAM)
        straight = _run(together, root, "straight", [], found)
        left = count
        while left:
            mine = min(KILLS_A_RUN, left)
            left -= mine
            moments = sorted(rng.sample(range(1, UPDATES // EVERY * 2 // 3), mine))
            ended = _run(together, root, f"killed{left}", [(EVERY * m, rng.randrange(2)) for m in moments], found)
            found.tried += mine
            if ended != straight:
                found.silent += 1
    return found


def _run(together: Any, root: Path, name: str, kills: list[tuple[int, int]], found: Found) -> bytes:
    """The last weights of a training that lost process `rank` once checkpoint `update` was there, for each of `kills`."""
    arguments = ["train", "CartPole-v1", "--ddp", "--name", name, "--runs", str(root), "-n", str(UPDATES * ROLLOUT)]
    arguments += ["--display", "quiet", "--preset", "sb3", "--checkpoint-every", str(EVERY * ROLLOUT)]
    arguments += [
        "--eval-every",
        "0",
        "--set",
        "envs=4",
        "--set",
        "rollout_steps=32",
        "--set",
        "minibatch_size=64",
        "--set",
        "epochs=2",
    ]
    command = [*together.TORCHRUN, f"--max-restarts={len(kills)}", str(root / "program.py"), *arguments]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env=together.environment(), start_new_session=True, **quiet) as process:
        try:
            newest = 0
            for update, rank in kills:
                # One that was made since the last kill: before it, those who took over may not be there yet.
                newest = _wait_for(process, root / name / "checkpoints", max(update, newest + EVERY))
                os.kill(together._child(process.pid, rank=rank), signal.SIGKILL)
                found.kills += 1
            if process.wait(timeout=PATIENCE):
                found.fault(f"{name}: torchrun gave up with {process.returncode}")
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    lines = [json.loads(line) for line in (root / name / "telemetry.ndjson").read_text().splitlines()]
    updates = [line["updates"] for line in lines if line["kind"] == "update"]
    if updates != sorted(set(updates)):
        found.fault(f"{name}: an update is in the record twice")
    if sum(line["kind"] == "run" for line in lines) != 1 + len(kills):
        found.fault(f"{name}: it was not gone on with after each of {len(kills)} kills")
    weights = root / name / "checkpoints/latest/weights.safetensors"
    if not weights.exists():
        found.unreadable += 1
        return b""
    return weights.read_bytes()


def _wait_for(process: subprocess.Popen[bytes], checkpoints: Path, update: int) -> int:
    """The newest checkpoint's update, once it is `update` or a later one."""
    until = time.monotonic() + PATIENCE
    while True:
        newest = max((int(p.name) for p in checkpoints.glob("[0-9]*") if p.name.isdecimal()), default=0)
        if newest >= update:
            return newest
        if process.poll() is not None or time.monotonic() > until:
            raise RuntimeError(f"it ended or hung before checkpoint {update}")
        time.sleep(0.01)


BLOCK = Block(
    name="K3c",
    title="kill -9 of one of two data-parallel learners, resumed to the last bit",
    over="engine",
    unit="kills",
    smoke=1,
    count=2,
    long=50,
    check=check,
    mutants={FORGETS: 1},
)
