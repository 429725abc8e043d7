"""Does `surefoot doctor PATH` name what is wrong in the logs of other libraries? Faults put into runs of SB3 and CleanRL.

The runs are made in the peer's own environment by workloads/foreign_runs.py: SB3 writes progress.csv or TensorBoard events and
saves its model beside them, CleanRL writes TensorBoard events. A run is harmful if it gets less than four fifths as far as the
healthy run of its library and environment; the finding to begin with must then be one of the fault's own. `alone` is the same
without the model that SB3 saved beside its log, which has the settings.

python benchmarks/doctor_foreign.py --python .venv-peers/bin/python --logs DIR --only sb3
python benchmarks/doctor_foreign.py --python .venv-peers-cleanrl/bin/python --logs DIR --only cleanrl --scripts CLEANRL/cleanrl
python benchmarks/doctor_foreign.py --logs DIR --reexamine     read the logs again, with the rules of now
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from surefoot.telemetry.doctor.doctor import examine_records
from surefoot.telemetry.foreign.logs import find_log, read_log
from workloads.foreign_runs import FAULTS

HERE = Path(__file__).resolve().parent
ENVS = {
    "sb3": ("CartPole-v1", "Acrobot-v1", "InvertedPendulum-v5"),
    "cleanrl": ("CartPole-v1", "Acrobot-v1", "InvertedPendulum-v4"),
}
SEEDS = (0, 1)
ONCE = "epochs-50"
"""Takes as long as eight other runs: in one environment with one seed only."""
BYNAME = {fault.name: fault for fault in FAULTS}


def train(library: str, known: dict[str, Any], args: argparse.Namespace) -> None:
    """Make the runs that are missing, one process for all of them."""
    cases = [
        {"fault": name, "env": env, "seed": seed}
        for seed in SEEDS
        for env in ENVS[library]
        for name in ("healthy", *BYNAME)
        if f"{library} {name} {env} s{seed}" not in known
        and (name != ONCE or (env, seed) == (ENVS[library][0], SEEDS[0]))
    ]
    command = [args.python, str(HERE / "workloads/foreign_runs.py"), library, str(args.logs), *args.scripts]
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write("".join(json.dumps(case) + "\n" for case in cases))
    worker.stdin.close()
    for line in worker.stdout:
        take(library, json.loads(line), known)
        write(known, args.out)


def take(library: str, run: dict[str, Any], known: dict[str, Any]) -> None:
    """Add a finished run, with what the doctor says about its log."""
    key = f"{library} {run['fault']} {run['env']} s{run['seed']}"
    known[key] = {name: round(run[name], 3) for name in ("start", "end", "cpu_seconds")}
    known[key] |= {"log": Path(run["folder"]).name, **examined(Path(run["folder"]))}
    print(key, known[key], file=sys.stderr, flush=True)


def examined(folder: Path) -> dict[str, Any]:
    """Return what the doctor says about the log, with and without the model beside it, and what the log does not tell."""
    path = find_log(folder)
    assert path is not None
    log = read_log(path)
    findings = examine_records(log.records()).findings
    with tempfile.TemporaryDirectory() as empty:
        alone = examine_records(read_log(Path(shutil.copy(path, empty))).records()).findings
    return {
        "primary": next((f.rule for f in findings if f.primary), None),
        "alone": next((f.rule for f in alone if f.primary), None),
        "findings": [f"{f.rule} {f.severity} {f.status}" for f in findings],
        "missing": log.missing(),
    }


def harmful(key: str, known: dict[str, Any]) -> bool:
    library, _, env, _ = key.split()
    well = [run for name, run in known.items() if name.startswith(f"{library} healthy {env} ")]
    if not well:
        return True
    start, end = (sum(run[name] for run in well) / len(well) for name in ("start", "end"))
    return known[key]["end"] - start < 0.8 * (end - start)


def summary(known: dict[str, Any]) -> list[dict[str, Any]]:
    """One row per library and part: harmful runs, and how many of them were found and named first."""
    rows: list[dict[str, Any]] = []
    for library in ENVS:
        for unseen in (False, True):
            chosen = {k: r for k, r in known.items() if k.startswith(library) and "healthy" not in k}
            chosen = {k: r for k, r in chosen.items() if BYNAME[k.split()[1]].unseen == unseen}
            bad = {k: r for k, r in chosen.items() if harmful(k, known)}
            rows.append({
                "library": library,
                "part": "unseen" if unseen else "seen",
                "kinds": len({k.split()[1] for k in chosen}),
                "runs": len(chosen),
                "harmful": len(bad),
                "found": sum(r["primary"] is not None for r in bad.values()),
                "named_first": sum(r["primary"] in BYNAME[k.split()[1]].right for k, r in bad.items()),
                "named_alone": sum(r["alone"] in BYNAME[k.split()[1]].right for k, r in bad.items()),
                "named_first_of_all": sum(r["primary"] in BYNAME[k.split()[1]].right for k, r in chosen.items()),
            })  # fmt: skip
    return rows


def write(known: dict[str, Any], out: Path) -> None:
    well = [run for key, run in known.items() if "healthy" in key]
    errors = sum(any(" error " in f or " fatal " in f for f in run["findings"]) for run in well)
    totals = {"rows": summary(known), "healthy": {"runs": len(well), "errors": errors}}
    results = {"command": "python benchmarks/doctor_foreign.py", "totals": totals, "runs": known}
    out.write_text(json.dumps(results, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="interpreter with the peer and its dependencies")
    parser.add_argument("--logs", type=Path, required=True, help="directory for the logs")
    parser.add_argument("--only", choices=tuple(ENVS))
    parser.add_argument("--scripts", nargs="*", default=[], help="directory with CleanRL's ppo.py")
    parser.add_argument("--take", type=Path, nargs="*", default=[], help="output of foreign_runs.py, LIBRARY-….jsonl")
    parser.add_argument("--reexamine", action="store_true")
    parser.add_argument("--out", type=Path, default=HERE / "results/doctor_foreign.json")
    args = parser.parse_args()
    known: dict[str, Any] = json.loads(args.out.read_text())["runs"] if args.out.exists() else {}
    for path in args.take:
        for line in path.read_text().splitlines():
            take(path.name.partition("-")[0], json.loads(line), known)
    if args.reexamine:
        for run in known.values():
            run.update(examined(args.logs / run["log"]))
    elif not args.take:
        for library in [args.only] if args.only else ENVS:
            train(library, known, args)
    write(known, args.out)
    print(json.dumps(summary(known), indent=1))


if __name__ == "__main__":
    main()
