"""Does the doctor find what is wrong? Faults put into runs on purpose, beside healthy runs that have none.

Each fault is trained in four environments with three seeds. It is harmful if the run gets less than four fifths as far as
healthy runs do. A harmful fault must be named: the finding to begin with, or the last such one if all is over at the end, is
one of its own rules. Healthy runs must have no finding of error or worse. With `--probe` (`surefoot doctor RUN --probe`) the
environment is played too: after every run of which the record did not name the cause, and after a third of the others.

Parts: "seen" are faults that rules were made with, "set aside" are faults that were measured only once or twice before,
"unseen" are those of workloads/unseen_faults.py. What was found in an unseen fault's runs at first is kept as `first_look`.

Runs are kept one by one in results/doctor.json, and their records in build/, so that the benchmark can be stopped and go on.

python benchmarks/doctor.py                     everything
python benchmarks/doctor.py lr-x100 healthy     only runs whose name has one of these in it
python benchmarks/doctor.py --part unseen       only these faults
python benchmarks/doctor.py --part strangers    faults that people reported, see doctor_strangers.py
python benchmarks/doctor.py --reexamine         read the records again, with the rules and tests of now
python benchmarks/doctor.py --replay            also play the environments again, as a probe does
"""

from __future__ import annotations

import argparse
import gzip
import json
import pickle
import shutil
import sys
import tempfile
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import msgspec
import numpy as np
import torch

from surefoot.envs.api import World
from surefoot.envs.gym.single_envs import EnvsWorld
from surefoot.envs.make import make_world
from surefoot.errors import SurefootError
from surefoot.telemetry.doctor.doctor import Doctor, Examination
from surefoot.telemetry.doctor.findings import Finding, severity_rank
from surefoot.telemetry.doctor.rules import shipped_rules
from surefoot.telemetry.reader import LineProblem, scan
from surefoot.telemetry.schema import Record, UpdateRecord
from surefoot.train.diagnose import environment_tests
from surefoot.train.diagnose.replay_tests import replay_stats
from surefoot.train.diagnose.run_probe import probe_environment, with_probe
from surefoot.train.diagnose.step_features import Steps
from surefoot.train.run import create_run
from surefoot.train.rundir.rundir import RunDir
from surefoot.train.spec import RunSpec, make_spec
from surefoot.train.training import Training
from workloads.run_faults import FAULTS, Fault
from workloads.unseen_envs import TrueReturn
from workloads.unseen_faults import NEW_FAULTS, OPENED

HERE = Path(__file__).resolve().parent
RECORDS = HERE.parent / "build" / "doctor-records"
ALL_FAULTS = {fault.name: fault for fault in (*FAULTS, *NEW_FAULTS)}
PARTS = ("seen", "set aside", "unseen")
ENVS = ("CartPole-v1", "Acrobot-v1", "Pendulum-v1", "InvertedPendulum-v5")
SEEDS = (40, 41, 42)
STEPS = {"CartPole-v1": 25_000, "Acrobot-v1": 30_000, "Pendulum-v1": 40_000, "InvertedPendulum-v5": 20_000}
DEFAULT_STEPS = 20_000
FAST: dict[str, dict[str, Any]] = {
    "Acrobot-v1": {"envs": 8, "rollout_steps": 128},
    "Pendulum-v1": {
        "gsde": False,
        "lr": "1e-3",
        "normalize_reward": True,
        "envs": 8,
        "rollout_steps": 128,
        "epochs": 10,
    },
    "MountainCarContinuous-v0": {"gsde": False, "log_std_init": 0.0},
    "InvertedPendulum-v5": {"envs": 8, "rollout_steps": 64, "epochs": 6, "minibatch_size": 256, "lr": "1e-3"},
}
"""Shorter rollouts, larger batches and plain noise instead of gSDE, so that a run learns within seconds."""
HEALTHY = (
    *("surefoot/ContextBandit-v0", "surefoot/Corridor-v0", "surefoot/CartPoleContinuous-v0", "surefoot/Bandit-v0"),
    *("surefoot/Target-v0", "surefoot/TwoKnobs-v0", "surefoot/TimeLimit-v0", "surefoot/Masked-v0"),
    *("MountainCarContinuous-v0", "Reacher-v5", "Hopper-v5", "LunarLander-v3", "MountainCar-v0", "Swimmer-v5"),
    *("HalfCheetah-v5", "InvertedDoublePendulum-v5", "FrozenLake-v1", "Taxi-v4", "CliffWalking-v1", "surefoot/Maze-v0"),
)
"""Further worlds of healthy runs."""
# Kinds that rules were made with and that get all three seeds, as the unseen ones do; the others get one.
THREE_SEEDS = (
    *(
        "lr-x100",
        "reward-x1e4",
        "ent-coef-high",
        "advantage-sign",
        "no-bootstrap",
        "dropout",
        "nan-reward",
        "reinitialised",
    ),
    *(
        "obs-zero",
        "obs-shuffled",
        "obs-late-2",
        "action-random",
        "reward-random",
        "ends-random",
        "gamma-low",
        "clip-tiny",
    ),
)


@dataclass(frozen=True)
class Case:
    """One run to make and to look at."""

    fault: Fault | None
    env: str
    seed: int

    @property
    def key(self) -> str:
        return f"{self.fault.name if self.fault else 'healthy'} {self.env} s{self.seed}"


def part_of(key: str) -> str:
    """Return the part that a run belongs to."""
    fault = ALL_FAULTS.get(key.split()[0])
    if fault is None:
        return "healthy"
    return "unseen" if fault in NEW_FAULTS else "set aside" if fault.held_out else "seen"


def cases() -> list[Case]:
    """All of them. Healthy runs of the four environments come first: they tell what is harmful."""
    found = [Case(None, env, seed) for env in ENVS for seed in SEEDS]
    others = [fault for fault in FAULTS if fault.name not in THREE_SEEDS]

    def grid(faults: Iterable[Fault], seeds: Sequence[int]) -> list[Case]:
        chosen = list(faults)
        return [Case(fault, env, seed) for seed in seeds for fault in chosen for env in where(fault)]

    # In an order that gives every table early: every kind once, then the other seeds.
    found += grid(NEW_FAULTS, SEEDS[:1])
    found += [Case(None, env, SEEDS[0]) for env in HEALTHY]
    found += grid((ALL_FAULTS[name] for name in THREE_SEEDS), SEEDS[:1]) + grid(others, SEEDS[:1])
    found += [Case(None, env, SEEDS[1]) for env in HEALTHY]
    for seed in SEEDS[1:]:
        found += grid((*NEW_FAULTS, *(ALL_FAULTS[name] for name in THREE_SEEDS)), (seed,))
    return found


def where(fault: Fault) -> tuple[str, ...]:
    return tuple(env for env in ENVS if not fault.envs or env in fault.envs)


def spec_of(case: Case, steps: int | None) -> RunSpec:
    world = make_world(case.env, 1)
    settings = {**FAST.get(case.env, {}), **(case.fault.settings if case.fault else {}), "seed": case.seed}
    total = steps or STEPS.get(case.env, DEFAULT_STEPS)
    spec = make_spec(case.env, world.action, settings=settings, total_steps=total, eval_every=0)
    return case.fault.before(spec) if case.fault and case.fault.before else spec


def run_case(case: Case, known: dict[str, dict[str, Any]], steps: int | None = None) -> dict[str, Any]:
    """Train it, let the doctor read its record from the first line to the last, and play its environment if that may help."""
    spec = spec_of(case, steps)
    with tempfile.TemporaryDirectory() as root:
        directory = RunDir(Path(root) / "run")
        directory.path.mkdir()
        returns = list[float]()
        training = Training(spec, world=world_of(case, spec.ppo.envs, returns))
        windows = kept_windows(training)
        if case.fault and case.fault.inject:
            case.fault.inject(training)
        run = create_run(directory, spec, training=training)
        begin, reason, message = time.process_time(), "finished", ""
        try:
            for _ in run.moments():
                pass
        except SurefootError as why:
            reason, message = "error", f"{type(why).__name__}: {why}"
        run.recorder.close(reason, message)  # pyright: ignore[reportArgumentType]
        if case.fault and case.fault.name == "two-writers":
            interleave(directory.telemetry)
        row, examination = examined(scan(directory.telemetry), case.fault)
        if returns:
            # What the policy really got; the record has what the fault made of it.
            row["true_return"] = round(float(np.mean(returns[-max(1, len(returns) // 5) :])), 3)
        row["cpu_seconds"] = round(time.process_time() - begin, 2)
        right = case.fault.right if case.fault else (None,)
        wanted = case.fault is None or not did_no_harm(case.key, row, known)
        if wanted and (row["primary"] not in right or zlib.crc32(case.key.encode()) % 3 == 0):
            row["probe"] = probed(training, examination)
        run.close(reason, message)  # pyright: ignore[reportArgumentType]
        RECORDS.mkdir(parents=True, exist_ok=True)
        with directory.telemetry.open("rb") as record, gzip.open(stored(case.key), "wb", compresslevel=4) as copy:
            shutil.copyfileobj(record, copy)
        with gzip.open(stored(case.key, ".steps.gz"), "wb", compresslevel=1) as file:
            pickle.dump(windows, file)
    return row


def world_of(case: Case, envs: int, returns: list[float]) -> World | None:
    """Return the environments with the fault in them, which append their true returns; None if it is not in them."""
    if case.fault is None or (wrap := case.fault.wrap) is None:
        return None
    return EnvsWorld([lambda: wrap(TrueReturn(gym.make(case.env), returns))] * envs, case.env)


def stored(key: str, ending: str = ".ndjson.gz") -> Path:
    """Return where the record of a run is kept, or with another ending, the steps that its environment was tested on."""
    return RECORDS / f"{key.replace('/', '.').replace(' ', '_')}{ending}"


@dataclass(frozen=True)
class Window:
    """Steps that the environment of a run was tested on while it trained."""

    updates: int
    """Updates of the record that has the results."""
    steps: dict[str, np.ndarray]
    choices: tuple[int, ...]
    bounds: tuple[np.ndarray, np.ndarray] | None
    names: tuple[str, ...]
    """Names of the results."""

    def stats(self) -> dict[str, float]:
        """Return the results of the tests of now."""
        return environment_tests.environment_stats(
            Steps(**{name: x.astype(np.float64) if name == "obs" else x for name, x in self.steps.items()}),
            self.choices,
            self.bounds,
        )


def kept_windows(training: Training) -> list[Window]:
    """Return a list that gets the steps of every test, so that changed tests can be tried without training again."""
    windows, monitor, tested = list[Window](), training.diagnostics._environment, environment_tests.environment_stats  # pyright: ignore[reportPrivateUsage]
    add, now = monitor.add, [0]

    def numbered(rollout: Any, updates: int) -> dict[str, float]:
        now[0] = updates + 1
        environment_tests.environment_stats = kept
        try:
            return add(rollout, updates)
        finally:
            environment_tests.environment_stats = tested

    def kept(steps: Steps, choices: tuple[int, ...] = (), bounds: Any = None) -> dict[str, float]:
        stats, arrays = tested(steps, choices, bounds), {name: getattr(steps, name) for name in Steps.__slots__}
        windows.append(Window(now[0], arrays | {"obs": smaller(steps.obs)}, choices, bounds, tuple(stats)))
        return stats

    monitor.add = numbered  # pyright: ignore[reportAttributeAccessIssue]
    return windows


def smaller(x: np.ndarray) -> np.ndarray:
    """Return the numbers in half the memory, if that loses nothing."""
    half = x.astype(np.float32)
    return half if (half == x).all() else x


def read_again(key: str, again: bool = True) -> Iterator[Record | LineProblem]:
    """Yield the kept record of a run; `again`: with the results that the tests of now have on the same steps."""
    path = stored(key, ".steps.gz")
    windows: list[Window] = pickle.loads(gzip.decompress(path.read_bytes())) if again and path.exists() else []
    by_update = {window.updates: window for window in windows}
    for record in scan(stored(key)):
        if isinstance(record, UpdateRecord) and (window := by_update.get(record.updates)) is not None:
            others = {name: x for name, x in record.m.items() if name not in window.names}
            record = msgspec.structs.replace(record, m=others | window.stats())
        yield record


def probed(training: Training, examination: Examination) -> dict[str, Any]:
    """Return the finding to begin with after playing the environment, the others, and what was measured."""
    try:
        _, stats = probe_environment(training)
    except SurefootError as why:
        return {"primary": None, "findings": [], "stats": {}, "error": str(why)}
    return {
        **probe_result(examination, stats, training.spec),
        "stats": {n: float(f"{x:.4g}") for n, x in stats.items()},
    }


def probe_result(examination: Examination, stats: dict[str, float], spec: RunSpec) -> dict[str, Any]:
    findings = with_probe(examination, stats, spec, shipped_rules()).findings
    return {"primary": next((f.rule for f in findings if f.primary), None), "findings": [_short(f) for f in findings]}


def interleave(path: Path) -> None:
    """As if a second process had written the second half of the record at the same time."""
    lines = path.read_bytes().splitlines(keepends=True)
    half = len(lines) // 2
    mixed = [line for pair in zip(lines[:half], lines[half : 2 * half], strict=True) for line in pair]
    path.write_bytes(b"".join(mixed))


def examined(records: Iterable[Record | LineProblem], fault: Fault | None) -> tuple[dict[str, Any], Examination]:
    """What was found, what came first, and when the first right finding opened."""
    doctor, first, updates, named = Doctor(), None, 0, None
    right = fault.right if fault else ()
    for record in records:
        told = doctor.observe(record)
        named = next((f.rule for f in doctor.findings() if f.primary), named) if told else named
        updates = record.updates if isinstance(record, UpdateRecord) else updates
        hit = next((f for f in told if f.rule in right and severity_rank(f.severity) > 0), None)
        first = first or hit
    found, history = doctor.findings(), doctor.history
    row = {
        "primary": named,
        "findings": [_short(f) for f in found],
        "updates": updates,
        "detected_at": None if first is None else first.since_update / max(updates, 1),
        "return": _plain(history.returns.smooth),
        "return_at_start": _plain(history.returns.start[0]),
    }
    final = _plain(history.returns.smooth)
    return row, Examination(found, doctor.rules, updates, history.env_steps, final, history.thriving)


def reexamined(known: dict[str, dict[str, Any]], words: Sequence[str]) -> None:
    """Read the kept records again with the rules of now; what was found at first in unseen faults stays beside it."""
    byname = {case.key: case for case in cases()}
    for key, row in known.items():
        if (words and not any(word in key for word in words)) or key not in byname or not stored(key).exists():
            continue
        case = byname[key]
        again, examination = examined(read_again(key), case.fault)
        row.update(again)
        if "probe" in row and row["probe"]["stats"]:
            row["probe"].update(probe_result(examination, row["probe"]["stats"], spec_of(case, None)))


def replayed(known: dict[str, dict[str, Any]], words: Sequence[str]) -> Iterator[str]:
    """Play the environments again of which a probe was made, or should be now; yield the runs that it was done for."""
    byname = {case.key: case for case in cases()}
    for key, row in known.items():
        case = byname.get(key)
        if case is None or (words and not any(word in key for word in words)):
            continue
        needed = case.fault is not None and not did_no_harm(key, row, known) and row["primary"] not in case.fault.right
        if "probe" not in row and not needed:
            continue
        probe = row.setdefault("probe", {"primary": None, "findings": [], "stats": {}})
        world = world_of(case, 8, []) or make_world(case.env, 8)
        stats = replay_stats(world, seed=case.seed + 2)
        world.close()
        probe["stats"].update({name: float(f"{x:.4g}") for name, x in stats.items()})
        yield key


def _short(finding: Finding) -> str:
    return f"{finding.rule} {finding.severity} {finding.status} @{finding.since_update}"


def _plain(x: float) -> float | None:
    return None if np.isnan(x) else round(float(x), 3)


def alarmed(run: dict[str, Any], least: int = 1) -> bool:
    """A finding at least this grave was ever opened."""
    names = ("info", "warn", "error", "fatal")
    return any(names.index(told.split()[1]) >= least for told in run["findings"])


def did_no_harm(key: str, run: dict[str, Any], known: dict[str, dict[str, Any]]) -> bool:
    """The run with the fault got at least four fifths as far as the healthy runs of its env did."""
    env, reached = key.split()[1], run.get("true_return", run["return"])
    well = [r for k, r in known.items() if k.startswith(f"healthy {env} ") and r["return"] is not None]
    if not well or reached is None or any(r["return_at_start"] is None for r in well):
        return False
    start, end = (float(np.mean([r[name] for r in well])) for name in ("return_at_start", "return"))
    return end > start and (reached - start) / (end - start) >= 0.8


def named_first(key: str, primary: str | None) -> bool:
    return primary in ALL_FAULTS[key.split()[0]].right


def with_probe_named(run: dict[str, Any]) -> str | None:
    """Return the finding to begin with after the probe; if all is over at the end, what the record named last."""
    return run.get("probe", run)["primary"] or run["primary"]


def summary(known: dict[str, dict[str, Any]], part: str, *, at_first: bool = False) -> dict[str, Any]:
    """Harmful runs of a part, and how many of them were found and named first, from the record and with the probe."""
    sick = {
        key: {**run, **run["first_look"]} if at_first else run
        for key, run in known.items()
        if (not at_first or "first_look" in run)
        and (part_of(key) == part or (part == "unseen, opened later" and key.split()[0] in OPENED)
            or (part == "unseen, never opened" and part_of(key) == "unseen" and key.split()[0] not in OPENED)
            or (part == "all" and part_of(key) != "healthy"))
    }  # fmt: skip
    harmful = {key: run for key, run in sick.items() if not did_no_harm(key, run, known)}
    right = {key: named_first(key, run["primary"]) for key, run in harmful.items()}
    # A run that was not played again keeps what its record said.
    after = {key: named_first(key, with_probe_named(run)) for key, run in harmful.items()}
    when = [run["detected_at"] for run in harmful.values() if run["detected_at"] is not None]
    return {
        "kinds": len({key.split()[0] for key in sick}),
        "runs": len(sick),
        "harmful": len(harmful),
        "found": sum(alarmed(run) for run in harmful.values()),
        "named_first": sum(right.values()),
        "probed": sum("probe" in run for run in harmful.values()),
        "named_first_with_probe": sum(after.values()),
        "median_time_to_detection": float(np.median(when)) if when else None,
    }


def healthy_summary(known: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """False alarms of healthy runs, from the record and, where it was tried, with the probe."""
    well = {key: run for key, run in known.items() if part_of(key) == "healthy"}
    tried = [run["probe"] for run in well.values() if "probe" in run]
    return {
        "runs": len(well),
        "worlds": len({key.split()[1] for key in well}),
        "errors": sum(alarmed(run, 2) for run in well.values()),
        "warnings": sum(alarmed(run) for run in well.values()),
        "probed": len(tried),
        "errors_with_probe": sum(alarmed(run, 2) for run in tried),
        "warnings_with_probe": sum(alarmed(run) for run in tried),
    }


def fault_rows(known: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """One row per fault that was tried: its part, runs, harmful ones, how many were named, and what was named instead."""
    rows: list[dict[str, Any]] = []
    for fault in ALL_FAULTS.values():
        runs = {key: run for key, run in known.items() if key.split()[0] == fault.name}
        harmful = {key: run for key, run in runs.items() if not did_no_harm(key, run, known)}
        if not runs:
            continue
        others = [str(run["primary"]) for run in harmful.values() if run["primary"] not in fault.right]
        rows.append({
            "fault": fault.name,
            "part": part_of(next(iter(runs))),
            "right": fault.right,
            "runs": len(runs),
            "harmful": len(harmful),
            "named_at_first": sum(named_first(key, run.get("first_look", run)["primary"]) for key, run in harmful.items()),
            "named": sum(named_first(key, run["primary"]) for key, run in harmful.items()),
            "with_probe": sum(named_first(key, with_probe_named(run)) for key, run in harmful.items()),
            "instead": {name: others.count(name) for name in sorted(set(others))},
        })  # fmt: skip
    return rows


def totals(known: dict[str, dict[str, Any]]) -> dict[str, Any]:
    names = (*PARTS, "unseen, opened later", "unseen, never opened", "all")
    return {
        "now": {name: summary(known, name) for name in names},
        "at_first": summary(known, "unseen", at_first=True),
        "healthy": healthy_summary(known),
    }


def report(known: dict[str, dict[str, Any]]) -> int:
    """Print the tables; 1 if what counts is not met."""
    for row in fault_rows(known):
        counts = f"{row['runs']:3} runs {row['harmful']:3} harmful {row['named']:3} named first"
        more = f"(at first {row['named_at_first']}, with probe {row['with_probe']}) instead {row['instead']}"
        print(f"{row['part']:10} {row['fault']:26} {counts} {more}")
    results = totals(known)
    print(json.dumps(results, indent=1))
    row, well = results["now"]["all"], results["healthy"]
    if not row["harmful"] or not well["runs"]:
        return 0
    return int(row["named_first"] < 0.8 * row["harmful"] or 40 * well["errors"] > well["runs"])


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="only runs whose name has one of these in it (default all)")
    parser.add_argument("--part", choices=(*PARTS, "healthy", "strangers"), help="only runs of this part")
    parser.add_argument("--steps", type=int, help="env steps of each run (default by env)")
    parser.add_argument("--out", type=Path, default=HERE / "results/doctor.json")
    parser.add_argument("--fresh", action="store_true", help="drop all results first")
    parser.add_argument("--again", action="store_true", help="train the chosen runs again; first looks are kept")
    parser.add_argument(
        "--reexamine", action="store_true", help="read the kept records with the rules of now; no training"
    )
    parser.add_argument(
        "--replay", action="store_true", help="play the environments of probed runs again, then reexamine"
    )
    parser.add_argument("--report", action="store_true", help="only print")
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    if args.part == "strangers":
        from doctor_strangers import main as strangers

        return strangers(args.words, again=args.again, reexamine=args.reexamine, only_report=args.report)
    known: dict[str, Any] = {}
    if args.out.exists() and not args.fresh:
        known = json.loads(args.out.read_text())["runs"]
    if args.replay:
        for key in replayed(known, args.words):
            print(key, file=sys.stderr, flush=True)
        write(known, args.out)
    if args.reexamine or args.replay:
        reexamined(known, args.words)
        write(known, args.out)
    if args.report or args.reexamine or args.replay:
        return report(known)
    args.out.parent.mkdir(exist_ok=True)
    for case in cases():
        wanted = not args.words or any(word in case.key for word in args.words)
        if not wanted or (args.part and part_of(case.key) != args.part) or (case.key in known and not args.again):
            continue
        before = known.get(case.key, {})
        row = run_case(case, known, args.steps)
        if "first_look" in before:
            row["first_look"] = before["first_look"]
        known[case.key] = row
        told = f"first {row['primary']}, {row['return_at_start']} → {row['return']}, {row['cpu_seconds']} s"
        print(f"{case.key}: {told}; {'; '.join(row['findings'])}", file=sys.stderr, flush=True)
        args.out.write_text(json.dumps({"runs": known}, indent=1) + "\n")
    write(known, args.out)
    return report(known)


def write(known: dict[str, dict[str, Any]], out: Path) -> None:
    text = json.dumps({"command": "make bench-doctor", "totals": totals(known), "runs": known}, indent=1)
    out.write_text(text + "\n")


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        sys.exit(main())
