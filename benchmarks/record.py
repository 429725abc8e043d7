"""What the record costs and how fast it is read: the writer's share of a run, lines validated a second, time to an alert.

    python benchmarks/record.py

The writer's share is the time spent inside the recorder's methods over the time of the run, on the fastest world there
is: on a slower one the share is smaller. Exit code 1 if a number misses its bar.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from itertools import count
from pathlib import Path
from typing import Any

BARS = {"writer_share": 0.005, "records_per_second": 100_000.0, "reaction_seconds": 1.0}


class Timed:
    """Calls of an object's methods with the seconds spent in them."""

    def __init__(self, inner: Any) -> None:
        self._inner, self.seconds, self.cpu, self.disk = inner, 0.0, 0.0, 0.0

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if not callable(value):
            return value

        def call(*args: Any, **kwargs: Any) -> Any:
            begin, cpu = time.perf_counter(), time.thread_time()
            try:
                return value(*args, **kwargs)
            finally:
                spent = time.perf_counter() - begin
                self.seconds += spent
                self.cpu += time.thread_time() - cpu
                self.disk += spent if name == "sync" else 0.0

        return call


def writer_share(steps: int) -> dict[str, float]:
    """A CartPole run on the fastest path there is, with its recorder timed."""
    from surefoot.envs.make import make_world
    from surefoot.train.run import create_run
    from surefoot.train.rundir import new_run_dir
    from surefoot.train.spec import make_spec

    with tempfile.TemporaryDirectory() as folder:
        action = make_world("CartPole-v1").action
        spec = make_spec("CartPole-v1", action, total_steps=steps, eval_every=0)
        run = create_run(new_run_dir("CartPole-v1", 0, root=Path(folder)), spec)
        timed: Any = Timed(run.recorder)
        run.recorder = timed
        begin, cpu = time.perf_counter(), time.process_time()
        for _ in run.moments(lambda: False):
            pass
        seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
        run.close("finished")
        size = run.directory.telemetry.stat().st_size
        updates = run.training.learner.updates
    return {
        "writer_share": timed.seconds / seconds,
        "of_it_waiting_for_the_disk": timed.disk / timed.seconds,
        "writer_cpu_share": timed.cpu / cpu,
        "run_seconds": seconds,
        "updates_per_second": updates / seconds,
        "megabytes_a_minute": size / 1e6 / seconds * 60,
    }


def validating(lines: int) -> dict[str, float]:
    """Lines a second of CPU time, of updates that have every number and every other one its epochs."""
    from surefoot.telemetry.schema import METRICS
    from surefoot.telemetry.validate import validate
    from surefoot.telemetry.writer import Recorder

    rng, clock = random.Random(0), count(1)
    with tempfile.TemporaryDirectory() as folder:
        recorder = Recorder(
            folder,
            "r",
            updates_per_second=1e12,
            sync_seconds=1e9,
            rotate_bytes=1 << 40,
            clock=lambda: float(next(clock)),
        )
        recorder.header(env="x", seed=0, config={})
        epoch = dict.fromkeys(("policy_loss", "value_loss", "entropy", "loss", "approx_kl", "grad_norm"), 0.123456789)
        for number in range(1, lines + 1):
            m = {name: rng.random() for name in METRICS}
            recorder.update(env_steps=number * 64, updates=number, m=m, epochs=[epoch] * 4 if number % 2 else [])
        recorder.close("finished")
        size = (Path(folder) / "telemetry.ndjson").stat().st_size
        begin = time.process_time()
        (verdict,) = validate(folder)
        seconds = time.process_time() - begin
    assert verdict.errors == 0
    return {
        "records_per_second": verdict.records / seconds,
        "megabytes_per_second": size / seconds / 1e6,
        "bytes_a_record": size / verdict.records,
    }


def reaction(times: int) -> dict[str, float]:
    """Seconds from a line's being written to the alert's being told, with the watcher's own interval."""
    from surefoot.cli.watch import WatchArgs
    from surefoot.telemetry.writer import Recorder

    waits: list[float] = []
    heard = threading.Event()

    class Listening(WatchArgs):
        def _say(self, text: str, plain: dict[str, Any]) -> None:
            if plain["status"] == "open":
                heard.set()

    with tempfile.TemporaryDirectory() as folder:
        watch = threading.Thread(target=Listening(run_name=folder + "/telemetry.ndjson", rule=("loss>5",)).run)
        watch.start()
        with Recorder(folder, "r", updates_per_second=1e9) as recorder:
            recorder.header(env="x", seed=0, config={})
            for i in range(times):
                for loss in (0.0, 0.0, 0.0):
                    recorder.update(env_steps=i, updates=i, m={"loss": loss})
                time.sleep(random.Random(i).uniform(0.3, 0.5))
                heard.clear()
                begin = time.perf_counter()
                recorder.update(env_steps=i, updates=i, m={"loss": 9.0})
                heard.wait(5)
                waits.append(time.perf_counter() - begin)
        watch.join()
    return {"reaction_seconds": max(waits), "reaction_median_seconds": statistics.median(waits)}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--lines", type=int, default=60_000)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent / "results/record.json")
    args = parser.parse_args()
    told: dict[str, float] = {}
    for part in (writer_share(args.steps), validating(args.lines), reaction(args.times)):
        told |= part
        for name, x in part.items():
            bar = f"   bar {BARS[name]:g}" if name in BARS else ""
            print(f"{name:28} {x:14,.4f}{bar}", flush=True)
    missed = [n for n, bar in BARS.items() if (told[n] < bar if n == "records_per_second" else told[n] > bar)]
    print(f"missed: {', '.join(missed)}" if missed else "every bar is met")
    args.out.parent.mkdir(exist_ok=True)
    record = {"command": "make bench-record", "cores": os.cpu_count(), "bars": BARS, "measured": told}
    args.out.write_text(json.dumps(record, indent=2) + "\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
