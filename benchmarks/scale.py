"""What more workers give, what a lost one costs, and how far a learner can be fed: measured here, and as a model.

    python benchmarks/scale.py                     everything that can be had here; Ray where it is installed
    python benchmarks/scale.py --only light        one workload

Rounds of all placements are interleaved, and the best one of several counts: others on the machine only ever slow it down.
The model (`scale_model.py`) takes what one process and one worker cost, measured in rounds between those. It is checked
against the wall time of 1 and 2 workers, and of 1 to 8 where an env waits and uses no core meanwhile; then it says where more
machines stop to help.
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
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from scale_model import Cost, Handing, line, piece, update
from surefoot.envs.make import make_world
from surefoot.scale.backend import WORLDS, BackendSpec, open_backend
from surefoot.scale.remote_training import RemoteTraining
from surefoot.scale.rollout_worker import RolloutWorker
from surefoot.train.device import pin_threads
from surefoot.train.spec import RunSpec, make_spec
from surefoot.train.training import Training

HERE = Path(__file__).resolve().parent
PLACEMENTS = ("here", "local:1", "local:2", "local:1 overlap", "local:2 overlap", "ray:2", "ray:2 overlap")
RECOVERED = 8.0
"""Seconds between two losses: time for another worker to be ready."""
STANDING = 1e-12
"""A learning rate at which every placement walks with the same policy: what a step of MuJoCo costs depends on where one is."""
LONG = 32
"""Rollouts that a walker makes beside the learner in one go, so that the learner is never alone."""
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
        {"envs": 16, "rollout_steps": 128, "epochs": 4, "minibatch_size": 256, "hidden": (64, 64), "path": "torch"},
        12,
        "CartPole × 16, 128 steps, 64 × 64, 4 epochs, learned by torch",
    ),
    "kernel": Workload(
        "CartPole-v1",
        {"envs": 16, "rollout_steps": 128, "epochs": 4, "minibatch_size": 256, "hidden": (64, 64)},
        60,
        "the same, learned by the kernel",
    ),
    "heavy": Workload(
        "HalfCheetah-v5",
        {"envs": 8, "rollout_steps": 128, "epochs": 4, "minibatch_size": 256, "hidden": (64, 64)},
        6,
        "HalfCheetah × 8, 128 steps, 64 × 64, 4 epochs",
    ),
    "waiting": Workload(
        "CartPole-v1",
        {"envs": 16, "rollout_steps": 32, "epochs": 4, "minibatch_size": 128, "hidden": (64, 64)},
        3,
        "an env that waits 2 ms × 16, 32 steps, 64 × 64, 4 epochs",
        FANNED,
        "scale_worlds:waiting",
        waits=True,
    ),
}


def spec_of(work: Workload) -> RunSpec:
    world = make_world(work.env)
    settings = {**work.settings, "lr": STANDING}
    spec = make_spec(work.env, world.action, preset_name="sb3", settings=settings, total_steps=10**9)
    world.close()
    return replace(spec, eval_every=0)


def training_of(work: Workload, spec: RunSpec, placement: str) -> Training:
    kind, _, overlap = placement.partition(" ")
    if kind == "here":
        return Training(spec, make=work.make(spec))
    spec = replace(spec, rollouts=kind, overlap=bool(overlap))
    address = "here" if kind.startswith("ray") else ""
    where = replace(BackendSpec.parse(kind), address=address, worlds=work.worlds)
    return RemoteTraining(spec, make=work.make(spec), placement=where)


class Probe:
    """Measures what the model takes, a round at a time; rounds lie between those of the placements."""

    def __init__(self, work: Workload, spec: RunSpec, kinds: Sequence[str]) -> None:
        self.work, self.spec = work, spec
        self._here = training_of(work, spec, "here")
        counts = sorted({1, max(1, spec.ppo.envs // 4), spec.ppo.envs // 2, spec.ppo.envs})
        told = spec.to_json()
        self._walkers = {n: RolloutWorker(told, 0, n, 0, work.worlds) for n in counts}
        small = replace(spec, ppo=spec.ppo.replace(envs=1, minibatch_size=spec.ppo.rollout_steps))
        self._far = {
            (kind, streams): training_of(work, which, f"{kind}:1")
            for kind in kinds
            for streams, which in ((1, small), (spec.ppo.envs, spec))
        }
        long = replace(spec, ppo=spec.ppo.replace(rollout_steps=LONG * spec.ppo.rollout_steps))
        self._beside = None if work.waits else open_backend(long, BackendSpec("local", 1, worlds=work.worlds))
        self._half = ("walk", str(spec.ppo.envs // 2))
        self._seen: dict[tuple[str, ...], list[float]] = {}
        first = self._walkers[spec.ppo.envs].collect(0).rollout
        arrays = first.arrays().values()
        self.weights = sum(x.nbytes for x in self._here.policy.state_dict().values())
        self._bytes = sum(x.nbytes for x in arrays) / first.reward.size
        self.round()
        self._seen.clear()

    def round(self) -> None:
        """Everything once."""
        alone = self._once()
        for what, seconds in alone.items():
            self._note(what, seconds)
        for (kind, streams), training in self._far.items():
            working, between = zip(*(self._handed(training) for _ in range(self.work.updates)), strict=True)
            self._note(("hand", kind, str(streams)), statistics.median(working))
            self._note(("travel", kind, str(streams)), statistics.median(between))
        if self._beside is None:
            return
        for what in (("learn",), self._half):
            self._beside.publish({n: x.detach().numpy() for n, x in self._here.policy.state_dict().items()}, 0)
            self._beside.ask()
            self._note(("beside", *what), self._once(what)[what])
            self._beside.receive()

    def _once(self, only: tuple[str, ...] | None = None) -> dict[tuple[str, ...], float]:
        """Seconds of learning from a rollout, new or one policy old, and of walking as many streams."""
        here = self._here

        def learning(lag: int) -> float:
            """Of a whole update, without its walking."""
            collect = here.collector.collect
            here.collector.collect = lambda policy_version=0: collect(max(0, policy_version - lag))
            begin = time.perf_counter()
            report = here.update()
            here.collector.collect = collect
            return time.perf_counter() - begin - report.seconds["collect"]

        def walking(walker: RolloutWorker) -> float:
            begin = time.perf_counter()
            walker.collect(0)
            return time.perf_counter() - begin

        tried: dict[tuple[str, ...], Callable[[], float]] = {
            ("learn",): lambda: learning(0),
            ("behind",): lambda: learning(1),
            **{("walk", str(n)): partial(walking, walker) for n, walker in self._walkers.items()},
        }
        took = {what: [run() for _ in range(self.work.updates)] for what, run in tried.items() if only in (None, what)}
        if only is None:
            half = took[self._half]
            self._note(("jitter",), statistics.stdev(half) / statistics.mean(half))
        return {what: statistics.mean(each) for what, each in took.items()}

    def _note(self, what: tuple[str, ...], value: float) -> None:
        self._seen.setdefault(what, []).append(value)

    def _handed(self, training: Training) -> tuple[float, float]:
        """Seconds of an update that being given its piece took: of work in this process, and of neither's."""
        collector: Any = training.collector
        collect, receive, said, took = collector.collect, collector.backend.receive, [], []

        def timed(version: int = 0) -> Any:
            wall, worked = time.perf_counter(), time.process_time()
            rollout = collect(version)
            took.extend((time.perf_counter() - wall, time.process_time() - worked))
            return rollout

        collector.backend.receive = lambda: said.extend(pieces := receive()) or pieces
        collector.collect = timed
        try:
            training.update()
        finally:
            collector.backend.receive, collector.collect = receive, collect
        wall, worked = took
        return worked, max(0.0, wall - worked - max(piece.seconds["collect"] for piece in said))

    def costs(self) -> tuple[Cost, dict[str, Handing]]:
        """The best of all rounds, as the model takes it."""
        best = {what: min(values) for what, values in self._seen.items()}

        def crowd(*what: str) -> float:
            return max(1.0, best.get(("beside", *what), 0.0) / best[what])

        steps, envs = self.spec.ppo.rollout_steps, self.spec.ppo.envs
        ask, walk = line((n, best["walk", str(n)] / steps) for n in self._walkers)
        batch = steps * envs
        cost = Cost(
            ask=ask,
            walk=walk,
            learn=best["learn",] / batch,
            behind=best["behind",] / batch,
            jitter=statistics.median(self._seen["jitter",]),
            crowd_walk=crowd(*self._half),
            crowd_learn=crowd("learn"),
            bytes=self._bytes,
        )
        handings = {}
        for kind in {kind for kind, _ in self._far}:
            each, whole = best["hand", kind, "1"], best["hand", kind, str(envs)]
            step = max(0.0, whole - each) / (steps * (envs - 1))
            handings[kind] = Handing(
                piece=max(0.0, each - step * steps), step=step, travel=best["travel", kind, str(envs)]
            )
        return cost, handings

    def close(self) -> None:
        """End whoever was asked."""
        for training in (self._here, *self._far.values()):
            training.close()
        for walker in self._walkers.values():
            walker.close()
        if self._beside is not None:
            self._beside.close()


def throughput(training: Training, updates: int) -> float:
    """Env steps a second of wall time; the first update is not counted, as what overlaps had time to walk before it."""
    training.update()
    before, begin = training.env_steps, time.perf_counter()
    for _ in range(updates):
        training.update()
    return (training.env_steps - before) / (time.perf_counter() - begin)


def lost(work: Workload, placement: str, how: signal.Signals, times: int = 5) -> dict[str, float]:
    """Seconds for which a killed or stopped worker held training up, the middle of several, beside an ordinary update.

    `replaced` is the part of it from when the loss was noticed until another worker stood in its place, its world built; the
    rest is the update itself, and the lost piece walked again.
    """
    training = training_of(work, spec_of(work), placement)
    assert isinstance(training, RemoteTraining)
    backend: Any = training.backend
    try:
        backend._patience = replace(backend._patience, fixed=5.0)
        plain, held, replaced = [], [], []
        take_its_place = backend._replace

        def timed(*arguments: Any) -> None:
            begin = time.perf_counter()
            take_its_place(*arguments)
            replaced.append(time.perf_counter() - begin)

        backend._replace = timed
        for _ in range(times):
            until = time.perf_counter() + RECOVERED
            while time.perf_counter() < until:
                begin = time.perf_counter()
                training.update()
                plain.append(time.perf_counter() - begin)
            victim = backend.processes[0]
            threading.Timer(plain[-1] / 2, os.kill, (victim, how)).start()
            begin = time.perf_counter()
            while not training.take_losses():
                training.update()
            held.append(time.perf_counter() - begin)
        middles = {"update": plain, "held": held, "replaced": replaced}
        return {name: statistics.median(seconds) for name, seconds in middles.items()} | {"times": times}
    finally:
        training.close()


def measure(name: str, repeats: int, *, ray: bool) -> dict[str, Any]:
    work = WORKLOADS[name]
    spec = spec_of(work)
    placements = [p for p in work.placements if ray or not p.startswith("ray")]
    trainings = {placement: training_of(work, spec, placement) for placement in placements}
    seen: dict[str, list[float]] = {placement: [] for placement in placements}
    probe = Probe(work, spec, ("local", "ray") if ray else ("local",))
    try:
        for training in trainings.values():
            throughput(training, 2)
        for _ in range(repeats):
            probe.round()
            for placement, training in trainings.items():
                # The others' workers wait on a pipe meanwhile, which costs nothing.
                seen[placement].append(throughput(training, work.updates))
        cost, handings = probe.costs()
    finally:
        probe.close()
        for training in trainings.values():
            training.close()
    print(f"{name}: {work.about}; µs a step: " + ", ".join(f"{k} {v * 1e6:.2f}" for k, v in asdict(cost).items()))
    for kind, handing in handings.items():
        print(f"  {kind}: " + ", ".join(f"{k} {v * 1e6:.2f}" for k, v in asdict(handing).items()))
    found = {
        "about": work.about,
        "cost": asdict(cost),
        "handing": {kind: asdict(handing) for kind, handing in handings.items()},
        "weights": probe.weights,
        "steps": spec.ppo.rollout_steps,
        "streams": spec.ppo.envs,
        "cores": None if work.waits else len(os.sched_getaffinity(0)),
    }
    rows: dict[str, Any] = {}
    for placement, rates in seen.items():
        said = modelled(found, placement)
        rows[placement] = {"steps_a_second": max(rates), "all": rates, "model": said}
        print(f"  {placement:18} {max(rates):10,.0f} steps/s   model {said:10,.0f}   {max(rates) / said:.2f}")
    return {**found, "placements": rows}


def modelled(found: dict[str, Any], placement: str) -> float:
    """Steps a second that the model gives a placement, from what was measured of its workload."""
    kind, _, overlap = placement.partition(" ")
    where, _, workers = kind.partition(":")
    cost, steps, streams = Cost(**found["cost"]), found["steps"], found["streams"]
    if not workers:
        return steps * streams / (piece(cost, steps, streams) + steps * streams * cost.learn)
    handing, cores = Handing(**found["handing"][where]), found["cores"] or float("inf")
    seconds = update(
        cost, handing, steps=steps, streams=streams, walkers=int(workers), cores=cores, overlap=bool(overlap)
    )
    return steps * streams / seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=[*WORKLOADS, "losses"])
    parser.add_argument("--repeats", type=int, default=9)
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
            print(
                f"  {name}: held up {row['held']:.2f} s, of it {row['replaced']:.2f} until there was another; "
                f"an update takes {row['update']:.3f} s"
            )
        args.out.write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
