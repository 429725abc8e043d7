"""Learning curves and CPU time of one script with Stable-Baselines3 and with `surefoot.sb3`, the same settings and seeds.

python benchmarks/sb3_curves.py                                what is missing; `benchmarks/peers.py sb3` makes the peer
python benchmarks/sb3_curves.py --only CartPole-v1 --seeds 3   some of it
python benchmarks/sb3_curves.py --side surefoot --again        ours anew
python benchmarks/sb3_curves.py --shares                       how much of our CPU time is the env's own
The script is benchmarks/workloads/sb3_curve.py; for Surefoot `stable_baselines3` is replaced by `surefoot.sb3` in it. Each seed
is a process with one thread. A run that is in the results is not repeated, so the program can be stopped and started again.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from peers import PEERS

HERE = Path(__file__).resolve().parent
SCRIPT = HERE / "workloads" / "sb3_curve.py"
RESULTS = HERE / "results" / "sb3_curves.json"
SHARES = HERE / "results" / "sb3_env_shares.json"
STEPS = {
    "CartPole-v1": 100_000,
    "Acrobot-v1": 100_000,
    "LunarLander-v3": 100_000,
    "Pendulum-v1": 50_000,
    "BipedalWalker-v3": 60_000,
    "Hopper-v5": 60_000,
}
BARS = {"Hopper-v5": 3.0}
"""Wanted ratio of CPU time: 3 for MuJoCo, 8 for all others."""
SIDES = ("sb3", "surefoot")
ALPHA = 0.05


def run(task: str, seed: int, side: str, wrap: list[str], share: bool = False) -> dict[str, Any]:
    """Return {"cpu_seconds", "curve"} of one seed, or {"share", "steps"} of the env."""
    with tempfile.TemporaryDirectory() as folder:
        script, result = Path(folder) / "script.py", Path(folder) / "result.json"
        text = SCRIPT.read_text()
        script.write_text(text if side == "sb3" else text.replace("stable_baselines3", "surefoot.sb3"))
        python = PEERS["sb3"].python if side == "sb3" else Path(sys.executable)
        threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        command = [*wrap, str(python), str(script), task, str(seed), str(result)]
        if share:
            command = [*wrap, str(python), str(HERE / "workloads/sb3_env_share.py"), str(script), task, str(result)]
        subprocess.run(command, check=True, cwd=folder, env={**os.environ, **threads})
        return json.loads(result.read_text())


def at_quarters(curve: list[tuple[int, float]], steps: int) -> list[float]:
    """Return the mean return of the last 100 episodes at 1/4, 2/4, 3/4 and 4/4 of the run, from the last rollout before each."""
    values = []
    for quarter in range(1, 5):
        before = [value for when, value in curve if when <= steps * quarter / 4]
        # The first rollout of LunarLander is longer than an eighth of the run; none is longer than a quarter.
        values.append(before[-1] if before else curve[0][1])
    return values


def p_value(a: list[float], b: list[float], draws: int = 20_000) -> float:
    """Return the p of a two-sided permutation test for equal means; it assumes nothing about the distributions."""
    both, n = np.array([*a, *b]), len(a)
    observed = abs(np.mean(a) - np.mean(b))
    generator = np.random.default_rng(0)
    shuffled = generator.permuted(np.tile(both, (draws, 1)), axis=1)
    differences = np.abs(shuffled[:, :n].mean(1) - shuffled[:, n:].mean(1))
    # The observed order counts as one of the draws, so p is never 0.
    return float((1 + np.sum(differences >= observed - 1e-12)) / (draws + 1))


def holm(values: dict[Any, float]) -> dict[Any, float]:
    """Return p-values corrected for their number by Holm's method."""
    corrected, largest = dict[Any, float](), 0.0
    for rank, name in enumerate(sorted(values, key=lambda k: values[k])):
        largest = max(largest, min(1.0, (len(values) - rank) * values[name]))
        corrected[name] = largest
    return corrected


def table(results: dict[str, Any]) -> str:
    """Return one row per task: quarters of both sides, the smallest corrected p, and the ratio of CPU time."""
    quarters: dict[str, dict[str, list[list[float]]]] = {}
    raw: dict[tuple[str, int], float] = {}
    for task, sides in results.items():
        if any(len(sides.get(side, {})) < 2 for side in SIDES):
            continue
        quarters[task] = {s: [at_quarters(r["curve"], STEPS[task]) for r in sides[s].values()] for s in SIDES}
        for q in range(4):
            theirs, ours = ([row[q] for row in quarters[task][side]] for side in SIDES)
            raw[task, q] = p_value(theirs, ours)
    corrected = holm(raw)
    rows = [
        "| task, steps | seeds SB3, ours | | 1/4 | 2/4 | 3/4 | end | CPU-s of `learn` | ratio | env's share |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    shares = json.loads(SHARES.read_text()) if SHARES.exists() else {}
    for task, sides in quarters.items():
        seconds = {s: statistics.median(r["cpu_seconds"] for r in results[task][s].values()) for s in SIDES}
        for side in SIDES:
            columns = np.array(sides[side]).T
            cells = [f"{np.mean(c):,.1f} ± {np.std(c, ddof=1) / len(c) ** 0.5:.1f}" for c in columns]
            head = (
                f"{task}, {STEPS[task]:,} | {len(sides['sb3'])}, {len(sides['surefoot'])}" if side == "sb3" else " | "
            )
            ratio = "" if side == "sb3" else f"**{seconds['sb3'] / seconds['surefoot']:.1f} ×**"
            name, of_env = ("SB3", "") if side == "sb3" else ("ours", _share(shares.get(task)))
            rows.append(f"| {head} | {name} | {' | '.join(cells)} | {seconds[side]:.1f} | {ratio} | {of_env} |")
        ps = " | ".join(f"{corrected[task, q]:.2f}" for q in range(4))
        rows.append(f"| | | p | {ps} | | | |")
    return "\n".join(rows)


def _share(measured: dict[str, Any] | None) -> str:
    if measured is None:
        return "?"
    return f"{measured['share']:.0%}" if measured["steps"] > 1000 else "built-in"


def main() -> None:
    """Run what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=list(STEPS), default=list(STEPS), help="tasks")
    parser.add_argument("--side", nargs="*", choices=SIDES, default=list(SIDES), help="whose runs")
    parser.add_argument("--seeds", type=int, default=10, help="seeds per task and side")
    parser.add_argument("--again", action="store_true", help="repeat runs that are in the results")
    parser.add_argument("--wrap", default="", help="command to start each process with, such as 'nice -n 5'")
    parser.add_argument("--table", action="store_true", help="run nothing")
    parser.add_argument("--shares", action="store_true", help="measure the share of the env in our CPU time instead")
    args = parser.parse_args()
    if args.shares:
        for task in args.only:
            shares = json.loads(SHARES.read_text()) if SHARES.exists() else {}
            shares[task] = run(task, 0, "surefoot", shlex.split(args.wrap), share=True)
            SHARES.write_text(json.dumps(shares, sort_keys=True, indent=1) + "\n")
            print(task, shares[task], flush=True)
        return
    finished: set[tuple[str, str, int]] = set()
    # Seeds first: whatever is finished can be compared.
    for seed in range(0 if args.table else args.seeds):
        for task in args.only:
            for side in args.side:
                results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
                runs = results.setdefault(task, {}).setdefault(side, {})
                if (str(seed) in runs and not args.again) or (task, side, seed) in finished:
                    continue
                one = run(task, seed, side, shlex.split(args.wrap))
                # Read again: another process may have written the other side meanwhile.
                results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
                results.setdefault(task, {}).setdefault(side, {})[str(seed)] = one
                finished.add((task, side, seed))
                RESULTS.write_text(json.dumps(results, sort_keys=True) + "\n")
                print(f"{task} {side} {seed}: {one['cpu_seconds']} s, {one['curve'][-1]}", flush=True)
    print(table(json.loads(RESULTS.read_text())))


if __name__ == "__main__":
    main()
