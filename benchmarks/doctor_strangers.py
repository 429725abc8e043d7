"""Does the doctor find the faults of strangers? 20 kinds that people reported: the part "strangers" of doctor.py.

The kinds (workloads/faults_of_strangers.py) were written by somebody who had not read the rules, and are never opened to
those who make rules. After training, the policy plays ten episodes of the right environment; a run is harmful if its mean
return gets less than four fifths of the way from an untrained policy's to the healthy runs'. A harmful fault is named if the
finding to begin with is one of those that were written down beside it. What the rules of the first day said stays as
`at_first`.

python benchmarks/doctor.py --part strangers                 all runs that are missing
python benchmarks/doctor.py --part strangers ascent s40      only runs whose name has one of these in it
python benchmarks/doctor.py --part strangers --reexamine     read the kept records with the rules of now
python benchmarks/doctor.py --part strangers --again         train the runs again, too: some tests run while a run trains
"""

from __future__ import annotations

import gzip
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch

from doctor import RECORDS, SEEDS, alarmed, examined, probe_result, probed
from surefoot.envs.gym.single_envs import EnvsWorld
from surefoot.errors import SurefootError
from surefoot.nets.policy import Policy
from surefoot.telemetry.reader import scan
from surefoot.train.evaluate import play
from surefoot.train.run import create_run
from surefoot.train.rundir.rundir import RunDir
from surefoot.train.spec import RunSpec, make_spec
from surefoot.train.training import Training
from workloads.faults_of_strangers import KINDS, RIGHT, TASKS, Kind, Task, build, judge, settings_of
from workloads.run_faults import Fault

OUT = Path(__file__).resolve().parent / "results/doctor_strangers.json"
EPISODES = 10
# Rules that did not exist when RIGHT was written, where title and causes say the same as the sentence of the kind. Added
# after their results had been seen; what is counted with them is counted apart.
RIGHT_LATER = {"as-bytes": ("E20",), "short-limit": ("E15",), "reset-keeps-state": ("E22",), "other-order": ("R29",)}
Case = tuple[Kind | None, Task, int]


def cases(seeds: Sequence[int] = SEEDS) -> dict[str, Case]:
    """Return all runs by their names, healthy ones first: they tell what is harmful."""
    chosen = [(kind, task, seed) for seed in seeds for kind in (None, *KINDS) for task in TASKS]
    return {f"{kind.name if kind else 'healthy'} {task.env} s{seed}": (kind, task, seed) for kind, task, seed in chosen}


def fault_of(kind: Kind | None) -> Fault | None:
    """Return what `doctor.examined` asks for."""
    return None if kind is None else Fault(kind.name, RIGHT[kind.name])


def spec_of(kind: Kind | None, task: Task, seed: int) -> RunSpec:
    action = EnvsWorld([build(kind, task)]).action
    settings: dict[str, Any] = {**settings_of(kind, task), "seed": seed}
    return make_spec(task.env, action, preset_name=task.preset, settings=settings, total_steps=task.steps, eval_every=0)


def stored(key: str) -> Path:
    return RECORDS / f"strangers.{key.replace(' ', '_')}.ndjson.gz"


def run_case(key: str, case: Case) -> dict[str, Any]:
    """Train it, play the policy, and let the doctor read the record; play the environment too where that may help."""
    kind, task, _ = case
    spec, begin = spec_of(*case), time.process_time()
    world = EnvsWorld([build(kind, task)] * spec.ppo.envs, task.env)
    with tempfile.TemporaryDirectory() as root:
        directory = RunDir(Path(root) / "run")
        directory.path.mkdir()
        training = Training(spec, world=world)
        row: dict[str, Any] = {}
        if kind is None:
            row["untrained"] = score(training.policy, case)
        run = create_run(directory, spec, training=training)
        reason, message = "finished", ""
        try:
            with kind.patch() if kind else nullcontext():
                for _ in run.moments():
                    pass
        except SurefootError as why:
            reason, message = "error", f"{type(why).__name__}: {why}"
        run.recorder.close(reason, message)  # pyright: ignore[reportArgumentType]
        again, examination = examined(scan(directory.telemetry), fault_of(kind))
        row |= {**again, "score": score(training.policy, case), "reason": reason}
        row["cpu_seconds"] = round(time.process_time() - begin, 2)
        if kind is None or row["primary"] not in RIGHT[kind.name]:
            row["probe"] = probed(training, examination)
        run.close(reason, message)  # pyright: ignore[reportArgumentType]
        RECORDS.mkdir(parents=True, exist_ok=True)
        with directory.telemetry.open("rb") as record, gzip.open(stored(key), "wb", compresslevel=4) as copy:
            shutil.copyfileobj(record, copy)
    return row


def score(policy: Policy, case: Case) -> float:
    """Return the mean return of the most likely actions where rewards and ends are right."""
    kind, task, seed = case
    world = EnvsWorld([judge(kind, task)] * EPISODES, task.env)
    mean = play(policy, world, EPISODES, seed=seed + 1_000_003).mean
    world.close()
    return round(mean, 2)


def is_harmful(key: str, known: dict[str, dict[str, Any]]) -> bool:
    env = key.split()[1]
    well = [row for name, row in known.items() if name.startswith(f"healthy {env} ")]
    begin, end = (float(np.mean([row[name] for row in well])) for name in ("untrained", "score"))
    return (known[key]["score"] - begin) / (end - begin) < 0.8


def named(key: str, primary: str | None, *, later: bool = False) -> bool:
    """Return whether the finding to begin with is right; `later` counts rules that came after the list was written."""
    kind = key.split()[0]
    return primary in RIGHT[kind] or (later and primary in RIGHT_LATER.get(kind, ()))


def looks(row: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what was found at first and now; `probe` is absent where the record was enough."""
    now = {name: row[name] for name in ("primary", "findings", "probe") if name in row}
    return {"at_first": row["at_first"], "now": now}


def summary(known: dict[str, dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Count harmful runs, and those that were found and named first, with the rules of the first day and of now."""
    sick = {key: row for key, row in known.items() if not key.startswith("healthy")}
    harmful = {key: looks(row) for key, row in sick.items() if is_harmful(key, known)}
    well = [looks(row) for key, row in known.items() if key.startswith("healthy")]
    result: dict[str, dict[str, float]] = {}
    for day in ("at_first", "now"):
        rows = {key: row[day] for key, row in harmful.items()}
        probed_rows = {key: row.get("probe", row)["primary"] for key, row in rows.items()}
        result[day] = {
            "kinds": len({key.split()[0] for key in rows}),
            "runs": len(sick),
            "harmful": len(rows),
            "found": sum(alarmed(row) for row in rows.values()),
            "named_first": sum(named(key, row["primary"]) for key, row in rows.items()),
            "named_first_with_probe": sum(named(key, primary) for key, primary in probed_rows.items()),
            "named_first_later": sum(named(key, row["primary"], later=True) for key, row in rows.items()),
            "named_first_later_with_probe": sum(named(key, x, later=True) for key, x in probed_rows.items()),
            "healthy": len(well),
            "healthy_errors": sum(alarmed(row[day], 2) for row in well),
            "healthy_warnings": sum(alarmed(row[day]) for row in well),
        }
    return result


def kind_rows(known: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one row per kind: its runs, the harmful ones, how many were named, and what was named instead."""
    rows: list[dict[str, Any]] = []
    for kind in KINDS:
        runs = [key for key in known if key.split()[0] == kind.name]
        harmful = [key for key in runs if is_harmful(key, known)]
        others = [str(known[key]["primary"]) for key in harmful if not named(key, known[key]["primary"])]
        rows.append({
            "kind": kind.name,
            "sentence": kind.sentence,
            "right": RIGHT[kind.name],
            "runs": len(runs),
            "harmful": len(harmful),
            "at_first": sum(named(key, known[key]["at_first"]["primary"]) for key in harmful),
            "now": sum(named(key, known[key]["primary"]) for key in harmful),
            "with_probe": sum(named(key, known[key].get("probe", known[key])["primary"]) for key in harmful),
            "instead": {name: others.count(name) for name in sorted(set(others))},
        })  # fmt: skip
    return rows


def main(words: Sequence[str], *, again: bool, reexamine: bool, only_report: bool) -> int:
    torch.set_num_threads(1)
    known: dict[str, dict[str, Any]] = json.loads(OUT.read_text())["runs"] if OUT.exists() else {}
    for key, case in cases().items():
        if only_report or (words and not any(word in key for word in words)):
            continue
        if reexamine:
            if key in known and stored(key).exists():
                row = known[key]
                looked_at, examination = examined(scan(stored(key)), fault_of(case[0]))
                row.update(looked_at, read_again=True)
                if "probe" in row and row["probe"]["stats"]:
                    row["probe"].update(probe_result(examination, row["probe"]["stats"], spec_of(*case)))
        elif again or key not in known:
            first = known.get(key, {}).get("at_first")
            row = run_case(key, case)
            row["at_first"] = first or {name: row[name] for name in ("primary", "findings", "probe") if name in row}
            known[key] = row
            print(f"{key}: {row['score']}, first {row['primary']}, {row['cpu_seconds']} s", file=sys.stderr, flush=True)
        write(known)
    for row in kind_rows(known):
        print({name: x for name, x in row.items() if name != "sentence"})
    print(json.dumps(summary(known), indent=1))
    return 0


def write(known: dict[str, dict[str, Any]]) -> None:
    results = {"command": "python benchmarks/doctor.py --part strangers", "totals": summary(known), "runs": known}
    OUT.write_text(json.dumps(results, indent=1) + "\n")
