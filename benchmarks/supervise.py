"""Kills and stops the workers of a real training again and again, and counts what that cost.

    python benchmarks/supervise.py --kills 30 --stops 10

CartPole of Gymnasium, stepped by three workers and the learner's process. Its observations carry two numbers that the
policy cannot see: which env this is, and how many steps it took. So every row that is learned from can be told from
every other.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.data.rollout import Rollout
from surefoot.envs.api import Step
from surefoot.envs.make import make_world
from surefoot.envs.workers.process_world import ProcessWorld
from surefoot.telemetry.reader import read_all
from surefoot.telemetry.schema import EventRecord
from surefoot.train.evaluate import play
from surefoot.train.run import create_run
from surefoot.train.rundir.rundir import RunDir
from surefoot.train.spec import RunSpec, make_spec
from surefoot.train.training import Training
from workloads.numbered import UNIT, Numbered

SETTINGS = {"envs": 8, "rollout_steps": 256, "minibatch_size": 256, "epochs": 10, "lr": 1e-3, "workers": 3}
LONGEST_PAUSE, SOLVED = 2.0, 475.0


class Tickets:
    """Counts the rows of rollouts that were used twice, or do not follow on the row before them."""

    def __init__(self) -> None:
        self.next_step: dict[int, int] = {}
        """{env: the step that must come next}."""
        self.used = self.twice = self.skipped = self.ghosts = 0

    def look(self, rollout: Rollout) -> None:
        numbers = np.rint(rollout.obs["obs"][..., 4:].astype(np.float64) / UNIT).astype(np.int64)
        self.ghosts += int((~rollout.valid).sum())
        for stream in range(rollout.valid.shape[1]):
            for number, step in numbers[rollout.valid[:, stream], stream].tolist():
                due = self.next_step.get(number, 0)
                self.used += 1
                self.twice += step < due
                self.skipped += step > due
                self.next_step[number] = max(due, step + 1)


class Clock:
    """When the steps of a world came, and whether all streams took part."""

    def __init__(self, world: ProcessWorld) -> None:
        self.longest_pause = self.longest_step = 0.0
        self.whole_since: float | None = None
        self._step, self._last = world.step, time.monotonic()

    def step(self, action: np.ndarray) -> Step:
        began = time.monotonic()
        step = self._step(action)
        now = time.monotonic()
        self.longest_step = max(self.longest_step, now - began)
        self.longest_pause = max(self.longest_pause, now - self._last)
        self._last = now
        if not step.valid.all():
            self.whole_since = None
        elif self.whole_since is None:
            self.whole_since = now
        return step


class Trouble(threading.Thread):
    """Sends a signal to one worker after the other, each time when all have been there for `calm` seconds."""

    def __init__(self, world: ProcessWorld, clock: Clock, signs: list[signal.Signals], calm: float) -> None:
        super().__init__(daemon=True)
        self.world, self.clock, self.signs, self.calm = world, clock, signs, calm
        self.back: dict[str, list[float]] = {sign.name: [] for sign in signs}
        """Seconds from a signal until all streams took part again."""
        self.done = False
        self._over = threading.Event()

    def run(self) -> None:
        rng = random.Random(0)
        for i, sign in enumerate(self.signs):
            self._wait(lambda: (self.clock.whole_since or np.inf) < time.monotonic() - self.calm)
            time.sleep(0.1 * rng.random())
            lost, sent = self.world.losses, time.monotonic()
            os.kill(self.world.worker_pids[i % self.world.workers], sign)
            self._wait(lambda lost=lost, sent=sent: self.world.losses > lost and (self.clock.whole_since or 0.0) > sent)
            self.back[sign.name].append((self.clock.whole_since or np.inf) - sent)
            if self._over.is_set():
                return
        self.done = True

    def stop(self) -> None:
        self._over.set()

    def _wait(self, until: Any) -> None:
        while not until() and not self._over.wait(0.005):
            pass


def spec(timeout: float) -> RunSpec:
    probe = make_world(Numbered)
    knobs = SETTINGS | {"worker_timeout": timeout}
    name = "CartPole-v1, numbered"
    fixed: dict[str, Any] = {"total_steps": 10**8, "eval_every": 0, "checkpoint_every": 50_000}
    return make_spec(name, probe.action, preset_name="sb3", settings=knobs, **fixed)


def campaign(kills: int, stops: int, *, timeout: float, calm: float, least: int, seed: int = 0) -> dict[str, Any]:
    """What 30 kills and 10 stops cost a run that trains at least `least` steps."""
    signs = [signal.SIGKILL] * kills + [signal.SIGSTOP] * stops
    random.Random(seed).shuffle(signs)
    training = Training(spec(timeout), make=lambda streams, workers=0: make_world(Numbered, streams, workers=workers))
    world, tickets = training.world, Tickets()
    assert isinstance(world, ProcessWorld)
    clock, collect = Clock(world), training.collector.collect
    world.step = clock.step

    def looked_at(version: int = 0) -> Rollout:
        rollout = collect(version)
        tickets.look(rollout)
        return rollout

    training.collector.collect = looked_at
    trouble, restarts, began = Trouble(world, clock, signs, calm), 0, time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        directory = RunDir(Path(place))
        run = create_run(directory, training.spec, training=training)
        trouble.start()
        try:
            for moment in run.moments(lambda: trouble.done and training.env_steps >= least):
                restarts += int(moment.report.stats.get("worker_restarts", 0))
        finally:
            trouble.stop()
            trouble.join()
        seconds = time.monotonic() - began
        played = play(training.policy, training.make(10), 20, seed=1)
        run.close("finished")
        told = [r for r in read_all(directory.path).records if isinstance(r, EventRecord) and r.name == "worker_lost"]
    return {
        "kills": kills,
        "stops": stops,
        "restarts": restarts,
        "told": len(told),
        "longest_pause": clock.longest_pause,
        "longest_step": clock.longest_step,
        "back": {name: {"median": float(np.median(s)), "longest": max(s)} for name, s in trouble.back.items()},
        "used_twice": tickets.twice,
        "skipped": tickets.skipped,
        "steps": tickets.used,
        "env_steps": training.env_steps,
        "ghost_rows": tickets.ghosts,
        "envs_built": len(tickets.next_step),
        "mean_return": played.mean,
        "seconds": seconds,
        "worker_timeout": timeout,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--stops", type=int, default=10)
    parser.add_argument("--timeout", type=float, default=1.0, help="worker_timeout of the run")
    parser.add_argument("--calm", type=float, default=1.8, help="seconds between a worker's return and the next signal")
    parser.add_argument("--least", type=int, default=200_000, help="env steps that are trained at least")
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent / "results/supervise.json")
    args = parser.parse_args()
    found = campaign(args.kills, args.stops, timeout=args.timeout, calm=args.calm, least=args.least)
    met = {
        f"{args.kills} kills and {args.stops} stops are as many restarts": found["restarts"] == args.kills + args.stops,
        f"longest pause < {LONGEST_PAUSE:g} s": found["longest_pause"] < LONGEST_PAUSE,
        "no step used twice": found["used_twice"] == found["skipped"] == 0,
        f"learned: mean return ≥ {SOLVED:g}": found["mean_return"] >= SOLVED,
    }
    for name, value in found.items():
        print(f"{name:15} {value if not isinstance(value, float) else f'{value:.3f}'}")
    print()
    for name, kept in met.items():
        print(f"{'met' if kept else 'NOT MET':8} {name}")
    args.out.parent.mkdir(exist_ok=True)
    args.out.write_text(json.dumps({"command": "python benchmarks/supervise.py", **found, "met": met}, indent=2) + "\n")
    return 0 if all(met.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
