"""What the record costs and how fast it is read: the writer's share of a run, lines validated a second, time to an alert.

    python benchmarks/record.py

The writer's share is the time a run spends telling the recorder something and waiting for it, over the time of the run,
on the fastest world there is, which the bar is held to, and on two of the usual kind. It is told of the wall clock, and of
CPU time, where the thread that pushes to the disk counts too. On a machine that does other things, the wall clock counts
those as well.
Exit code 1 if a number misses its bar.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

USUAL = {"HalfCheetah-v5": 60_000, "Acrobot-v1": 200_000}
"""Runs as people have them, and env steps to look at."""
BARS = {"writer_share": 0.005, "records_per_second": 100_000.0, "reaction_seconds": 1.0}


class Stopwatch:
    """Seconds spent in the functions it was put on, from whichever thread."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock, self.seconds = clock, 0.0

    def on(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        clock = self.clock

        def call(*args: Any, **kwargs: Any) -> Any:
            clock()  # the first look after a while is slow
            before = clock()
            begin = clock()  # a look at the CPU clock takes microseconds, which are not the recorder's
            try:
                return inner(*args, **kwargs)
            finally:
                self.seconds += clock() - begin - (begin - before)

        return call


def writer_share(steps: int) -> dict[str, float]:
    """A CartPole run on the fastest path there is, with its recorder timed: on the wall first, then in CPU time."""
    wall, cpu = _timed_run(steps, time.perf_counter), _timed_run(steps, time.thread_time)
    usual = {env: _timed_run(few, time.perf_counter, env) for env, few in USUAL.items()}
    shares = {f"writer_share in {env}": (x["calls"] + x["waits"]) / x["run_seconds"] for env, x in usual.items()}
    return {
        **shares,
        "writer_share": (wall["calls"] + wall["waits"]) / wall["run_seconds"],
        "of_it_waiting_for_the_disk": wall["waits"] / (wall["calls"] + wall["waits"]),
        "disk_beside_the_run_share": wall["beside"] / wall["run_seconds"],
        "writer_cpu_share": (cpu["calls"] + cpu["waits"] + cpu["beside"]) / cpu["run_cpu_seconds"],
        "run_seconds": wall["run_seconds"],
        "run_cpu_seconds": cpu["run_cpu_seconds"],
        "updates_per_second": wall["updates"] / wall["run_seconds"],
        "lines_per_second": wall["lines"] / wall["run_seconds"],
        "megabytes_a_minute": wall["bytes"] / 1e6 / wall["run_seconds"] * 60,
    }


def _timed_run(steps: int, clock: Callable[[], float], env: str = "CartPole-v1") -> dict[str, float]:
    """Seconds of the run, and by `clock` of what tells the recorder, waits for the disk, or pushes to it beside the run."""
    from surefoot.envs.make import make_world
    from surefoot.telemetry.files import line_file
    from surefoot.train.run import create_run
    from surefoot.train.rundir.rundir import new_run_dir
    from surefoot.train.spec import make_spec

    push, calls, waits, beside = line_file._sync, Stopwatch(clock), Stopwatch(clock), Stopwatch(clock)
    line_file._sync = beside.on(push)
    with tempfile.TemporaryDirectory() as folder:
        action = make_world(env).action
        spec = make_spec(env, action, total_steps=steps, eval_every=0)
        run: Any = create_run(new_run_dir(env, 0, root=Path(folder)), spec)
        if clock is time.thread_time:  # lines come as often as on a machine that does nothing else
            since = time.time() - clock()
            run.recorder._clock = lambda: since + clock()
        run.record = calls.on(run.record)  # every call of episode() and update(), and what comes before them
        run.recorder.begin_sync, run.recorder.sync = calls.on(run.recorder.begin_sync), waits.on(run.recorder.sync)
        begin, cpu = time.perf_counter(), time.process_time()
        for _ in run.moments(lambda: False):
            pass
        seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
        run.close("finished")
        told = run.directory.telemetry.read_bytes()
    line_file._sync = push
    return {
        "calls": calls.seconds,
        "waits": waits.seconds,
        "beside": beside.seconds,
        "run_seconds": seconds,
        "run_cpu_seconds": cpu,
        "updates": run.training.learner.updates,
        "lines": told.count(b"\n"),
        "bytes": len(told),
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
    from surefoot.telemetry.writer import Recorder

    waits: list[float] = []
    heard = threading.Event()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "surefoot", "telemetry", "watch", f"{folder}/telemetry.ndjson"]
        watch = subprocess.Popen([*command, "--rule", "loss>5", "--json"], stdout=subprocess.PIPE, text=True)
        out = watch.stdout
        assert out is not None

        def listen() -> None:
            for line in out:
                if json.loads(line)["status"] == "open":
                    heard.set()

        listener = threading.Thread(target=listen)
        listener.start()
        with Recorder(folder, "r", updates_per_second=1e9) as recorder:
            recorder.header(env="x", seed=0, config={})
            # The first alert also waits for the process to start; it is not counted.
            for i in range(times + 1):
                for loss in (0.0, 0.0, 0.0):
                    recorder.update(env_steps=i, updates=i, m={"loss": loss})
                time.sleep(random.Random(i).uniform(0.3, 0.5))
                heard.clear()
                begin = time.perf_counter()
                recorder.update(env_steps=i, updates=i, m={"loss": 9.0})
                heard.wait(5)
                waits.append(time.perf_counter() - begin)
        listener.join()
        watch.wait()
    return {"reaction_seconds": max(waits[1:]), "reaction_median_seconds": statistics.median(waits[1:])}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=600_000)
    parser.add_argument("--lines", type=int, default=60_000)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent / "results/record.json")
    args = parser.parse_args()
    told: dict[str, float] = {}
    load = os.getloadavg()[0]  # of what else runs: it makes every share larger
    for part in (writer_share(args.steps), validating(args.lines), reaction(args.times)):
        told |= part
        for name, x in part.items():
            bar = f"   bar {BARS[name]:g}" if name in BARS else ""
            print(f"{name:28} {x:14,.4f}{bar}", flush=True)
    missed = [n for n, bar in BARS.items() if (told[n] < bar if n == "records_per_second" else told[n] > bar)]
    print(f"missed: {', '.join(missed)}" if missed else "every bar is met")
    args.out.parent.mkdir(exist_ok=True)
    record = {"command": "make bench-record", "cores": os.cpu_count(), "load": load, "bars": BARS, "measured": told}
    args.out.write_text(json.dumps(record, indent=2) + "\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
