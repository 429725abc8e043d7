"""What more workers give, what a lost one costs, and how far a learner can be fed: measured here, and as a model.

    python benchmarks/scale.py                     everything that can be had here; Ray where it is installed
    python benchmarks/scale.py --only light        one workload

Rounds of all placements are interleaved, and the middle one of several counts. The model takes four numbers, measured on
one core by CPU time: seconds to walk a step, to learn from one, to hand one over, and bytes a step. It is checked against
the wall time of 1 and 2 workers, and of 1 to 8 where an env waits and uses no core meanwhile (its walking is by the clock);
then it says where more machines stop to help.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import signal
import statistics
import sys
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from surefoot.envs.make import make_world
from surefoot.scale.backend import STEPWISE, Piece, join
from surefoot.scale.choose import WORLDS, Placement
from surefoot.scale.far import FarTraining
from surefoot.scale.worker import RolloutWorker
from surefoot.train.device import pin_threads
from surefoot.train.spec import RunSpec, make_spec
from surefoot.train.training import Training

HERE = Path(__file__).resolve().parent
PLACEMENTS = ("here", "local:1", "local:2", "local:1 overlap", "local:2 overlap", "ray:2", "ray:2 overlap")
FANNED = ("here", "local:1", "local:2", "local:4", "local:8", "local:8 overlap", "ray:2", "ray:8")


@dataclass(frozen=True)
class Workload:
    """An env and how it is trained."""

    env: str
    settings: dict[str, Any]
    updates: int
    about: str
    placements: tuple[str, ...] = PLACEMENTS
    worlds: str = WORLDS
    waits: bool = False
    """Its envs wait, so walkers need no core of their own."""

    @property
    def make(self) -> Any:
        """What makes its worlds, from a spec."""
        module, _, function = self.worlds.partition(":")
        return getattr(importlib.import_module(module), function)


WORKLOADS = {
    "light": Workload(
        "CartPole-v1",
        {"envs": 16, "steps": 128, "epochs": 4, "minibatch_size": 256, "hidden": (64, 64), "path": "torch"},
        12,
        "CartPole × 16, 128 steps, 64 × 64, 4 epochs, learned by torch",
    ),
    "kernel": Workload(
        "CartPole-v1",
        {"envs": 16, "steps": 128, "epochs": 4, "minibatch_size": 256, "hidden": (64, 64)},
        60,
        "the same, learned by the kernel",
    ),
    "heavy": Workload(
        "HalfCheetah-v5",
        {"envs": 8, "steps": 128, "epochs": 4, "minibatch_size": 256, "hidden": (64, 64)},
        6,
        "HalfCheetah × 8, 128 steps, 64 × 64, 4 epochs",
    ),
    "waiting": Workload(
        "CartPole-v1",
        {"envs": 16, "steps": 32, "epochs": 4, "minibatch_size": 128, "hidden": (64, 64)},
        3,
        "an env that waits 2 ms × 16, 32 steps, 64 × 64, 4 epochs",
        FANNED,
        "scale_worlds:waiting",
        waits=True,
    ),
}


def spec_of(work: Workload) -> RunSpec:
    world = make_world(work.env)
    spec = make_spec(work.env, world.action, preset_name="sb3", settings=work.settings, total_steps=10**9)
    world.close()
    return replace(spec, eval_every=0)


def training_of(work: Workload, spec: RunSpec, placement: str) -> Training:
    kind, _, overlap = placement.partition(" ")
    if kind == "here":
        return Training(spec, make=work.make(spec))
    spec = replace(spec, rollouts=kind, overlap=bool(overlap))
    address = "here" if kind.startswith("ray") else ""
    where = replace(Placement.parse(kind), address=address, worlds=work.worlds)
    return FarTraining(spec, make=work.make(spec), placement=where)


def throughput(training: Training, updates: int) -> float:
    """Env steps a second of wall time."""
    before, begin = training.env_steps, time.perf_counter()
    for _ in range(updates):
        training.update()
    return (training.env_steps - before) / (time.perf_counter() - begin)


def costs(work: Workload, spec: RunSpec, rounds: int = 8) -> dict[str, float]:
    """CPU-seconds a step: to walk it (by the clock where it waits), to learn from it, to hand it over; and its bytes."""
    worker = RolloutWorker(spec.to_json(), 0, spec.ppo.envs, 0, work.worlds)
    training = Training(spec, make=work.make(spec))
    pieces: list[Piece] = [worker.collect(0)]
    training.learner.update(pieces[0].rollout)
    clock = time.perf_counter if work.waits else time.process_time
    begin = clock()
    pieces = [worker.collect(0) for _ in range(rounds)]
    walking, walked = clock() - begin, time.process_time()
    for piece in pieces:
        training.learner.update(join([piece]))
    learning = time.process_time() - walked
    steps = sum(piece.steps for piece in pieces)
    first = pieces[0].rollout
    size = sum(getattr(first, name).nbytes for name in STEPWISE) + sum(x.nbytes for x in first.obs.values())
    from surefoot.scale.local import _arrays  # the same way as the backend does
    from surefoot.scale.memory import Shared

    memory, before = Shared(os.memfd_create("bench")), time.process_time()
    for piece in pieces:
        layout, _ = memory.put(_arrays(piece.rollout))
        join([replace(piece, rollout=piece.rollout)])
        memory.get(layout)
    handed = time.process_time() - before
    training.close()
    return {
        "walk": walking / steps,
        "learn": learning / steps,
        "hand": handed / steps,
        "bytes": size / first.reward.size,
    }


def model(cost: dict[str, float], workers: int, *, overlap: bool, cores: int, batch: int, rate: float = 8e9) -> float:
    """Steps a second of `workers` walkers and one learner: the slower of the two where they overlap, else both in turn.

    `rate` is bytes a second between them. Walkers and learner share `cores`; with enough of them each has its own.
    """
    walk = batch * cost["walk"] / workers
    learn = batch * (cost["learn"] + cost["hand"] + cost["bytes"] / rate)
    if not overlap:
        return batch / (walk * max(1.0, workers / cores) + learn)
    return batch / max(walk, learn, (walk * workers + learn) / cores)


def lost(work: Workload, placement: str, how: signal.Signals) -> dict[str, float]:
    """Seconds for which a killed or stopped worker held training up, beside an ordinary update."""
    training = training_of(work, spec_of(work), placement)
    assert isinstance(training, FarTraining)
    backend: Any = training.backend
    try:
        for _ in range(3):
            training.update()
        begin = time.perf_counter()
        training.update()
        plain = time.perf_counter() - begin
        backend.timeout = 5.0
        victim = backend.processes[0]
        threading.Timer(plain / 2, os.kill, (victim, how)).start()
        begin = time.perf_counter()
        while not (told := training.take_losses()):
            training.update()
        held = time.perf_counter() - begin
        training.update()
        return {"update": plain, "held": held, "told": len(told)}
    finally:
        training.close()


def measure(name: str, repeats: int, *, ray: bool) -> dict[str, Any]:
    work = WORKLOADS[name]
    spec = spec_of(work)
    cost = costs(work, spec)
    placements = [p for p in work.placements if ray or not p.startswith("ray")]
    print(
        f"{name}: {work.about}; a step costs "
        + ", ".join(f"{k} {v * 1e6:.2f} µs" for k, v in cost.items() if k != "bytes")
    )
    trainings = {placement: training_of(work, spec, placement) for placement in placements}
    seen: dict[str, list[float]] = {placement: [] for placement in placements}
    try:
        for training in trainings.values():
            throughput(training, 2)
        for _ in range(repeats):
            for placement, training in trainings.items():
                # The others' workers wait on a pipe meanwhile, which costs nothing; what overlaps is heard first.
                seen[placement].append(throughput(training, work.updates))
    finally:
        for training in trainings.values():
            training.close()
    cores, batch = 1000 if work.waits else len(os.sched_getaffinity(0)), spec.ppo.batch_size
    rows: dict[str, Any] = {}
    for placement, rates in seen.items():
        kind, _, overlap = placement.partition(" ")
        workers = int(kind.partition(":")[2] or 0)
        said = model(cost, workers, overlap=bool(overlap), cores=cores, batch=batch) if workers else None
        rows[placement] = {"steps_a_second": statistics.median(rates), "all": rates, "model": said}
        print(
            f"  {placement:18} {statistics.median(rates):10,.0f} steps/s" + (f"   model {said:10,.0f}" if said else "")
        )
    return {"about": work.about, "cost": cost, "batch": batch, "cores": cores, "placements": rows}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=[*WORKLOADS, "losses"])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "scale.json")
    args = parser.parse_args()
    pin_threads(1)
    results: dict[str, Any] = json.loads(args.out.read_text()) if args.out.exists() else {}
    ray = importlib.util.find_spec("ray") is not None
    if ray:
        engine: Any = importlib.import_module("ray")
        engine.init(address="local", num_cpus=16, include_dashboard=False, log_to_driver=False, logging_level="error")
    for name in WORKLOADS:
        if args.only in (None, name):
            results[name] = measure(name, args.repeats, ray=ray)
            args.out.write_text(json.dumps(results, indent=1) + "\n")
    if args.only in (None, "losses"):
        results["losses"] = {
            f"{placement} {how.name}": lost(WORKLOADS["light"], placement, how)
            for placement in (["local:2", "ray:2"] if ray else ["local:2"])
            for how in (signal.SIGKILL, signal.SIGSTOP)
        }
        for name, row in results["losses"].items():
            print(f"  {name}: held up {row['held']:.2f} s, an update takes {row['update']:.3f} s")
        args.out.write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
