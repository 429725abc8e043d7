"""MuJoCo's tasks in C beside Gymnasium's envs: CPU time per step, the share of it that is mj_step, and training end to end.

    python benchmarks/mujoco_worlds.py --rounds 12            writes results/mujoco_worlds.json

Stepping: in each round, the same random actions move the same states three times: Gymnasium's envs, the kernel, and mj_step
called alone (the empty call is subtracted). Training: updates of both sides in turns, with the sizes of W2.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from pathlib import Path
from statistics import median
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import gymnasium
import mujoco
import numpy as np
import torch

from surefoot.envs.gym.mujoco import IN_LIBMUJOCO, MujocoWorld
from surefoot.envs.make import make_world
from surefoot.native import instruction_set
from surefoot.train.spec import make_spec
from surefoot.train.training import Training
from workers import random_actions

RESULT = Path(__file__).parent / "results" / "mujoco_worlds.json"
STREAMS, STEPS = 8, 60
clock = time.process_time


def stepped(world: Any, state: Any, actions: list[np.ndarray]) -> tuple[float, list[np.ndarray]]:
    """Return the CPU-seconds that the actions took, and which streams ended at each step."""
    world.set_state(state)
    before = clock()
    steps = [world.step(action) for action in actions]
    return clock() - before, [step.terminated | step.truncated for step in steps]


def only_mj_step(bases: list[Any], actions: list[np.ndarray], ended: list[np.ndarray]) -> float:
    """Return the CPU-seconds of mj_step alone, with resets where episodes ended, which are not counted."""

    def one(base: Any, nstep: int) -> float:
        before = clock()
        mujoco.mj_step(base.model, base.data, nstep=nstep)
        return clock() - before

    total = 0.0
    for action, over in zip(actions, ended, strict=True):
        for base, row, end in zip(bases, action, over, strict=True):
            base.data.ctrl[:] = row
            total += one(base, base.frame_skip) - one(base, 0)
            if end:
                base.reset()
    return total


def stepping(name: str, rounds: int) -> dict[str, float]:
    """Return microseconds of CPU per env step: medians of the rounds."""
    native, theirs = make_world(name, STREAMS), make_world(name, STREAMS, backend="gymnasium", workers=0)
    assert isinstance(native, MujocoWorld)
    rng, rows = np.random.default_rng(0), []
    native.reset(0)
    state = native.state()
    for _ in range(rounds):
        actions = [random_actions(native, rng) for _ in range(STEPS)]
        kernel, ended = stepped(native, state, actions)
        after = native.state()
        gym, _ = stepped(theirs, state, actions)
        native.set_state(state)
        alone = only_mj_step([env.unwrapped for env in native._envs.envs], actions, ended)
        rows.append([1e6 * x / (STREAMS * STEPS) for x in (gym, kernel, alone)])
        state = after
    gym, kernel, alone = (median(column) for column in zip(*rows, strict=True))
    share = median(row[2] / row[1] for row in rows)
    return {"gymnasium": gym, "kernel": kernel, "mj_step": alone, "share": share}


def training(envs: int, rounds: int) -> dict[str, Any]:
    """Return steps per CPU-second of both sides, and the ratio round by round."""

    def made(backend: Any) -> Training:
        world = make_world("HalfCheetah-v5", envs, backend=backend, workers=0)
        settings = {"envs": envs, "rollout_steps": 2048 // envs, "epochs": 10, "minibatch_size": 64}
        spec = make_spec(world.name, world.action, preset_name="sb3", settings=settings, total_steps=10**9)
        return Training(spec, world=world)

    sides = {side: made(side) for side in ("gymnasium", "surefoot")}
    rates: dict[str, list[float]] = {side: [] for side in sides}
    for number in range(rounds + 1):
        for side, run in sides.items():
            steps, before = run.env_steps, clock()
            report = run.update()
            if number:  # the first warms up
                rates[side].append((run.env_steps - steps) / (clock() - before))
    digits = [run.policy.state_dict() for run in sides.values()]
    return {
        "rates": {side: median(each) for side, each in rates.items()},
        "ratio": median(b / a for a, b in zip(rates["gymnasium"], rates["surefoot"], strict=True)),
        "same_weights": all(torch.equal(x, digits[1][key]) for key, x in digits[0].items()),
        "path": report.path,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--updates", type=int, default=6)
    args = parser.parse_args()
    torch.set_num_threads(1)
    found: dict[str, Any] = {"tasks": {}, "training": {}}
    for name in IN_LIBMUJOCO:
        row = found["tasks"][name] = stepping(name, args.rounds)
        print(name, {key: round(value, 3) for key, value in row.items()}, flush=True)
    for envs in (1, 8):
        row = found["training"][str(envs)] = training(envs, args.updates)
        print(envs, row, flush=True)
    found["machine"] = (
        f"{platform.machine()} with {instruction_set()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.0f}"
    )
    found["versions"] = {"mujoco": mujoco.__version__, "gymnasium": gymnasium.__version__, "numpy": np.__version__}
    found.update(streams=STREAMS, rounds=args.rounds, updates=args.updates)
    RESULT.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
