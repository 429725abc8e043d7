"""Does the kernel learn what the torch path learns? The same seeds both ways, return curves, a test of the difference.

python benchmarks/paths.py                          10 seeds of 3 envs; a run that was stopped goes on where it was
python benchmarks/paths.py --control clip=0.02      torch against torch with a setting changed: what a difference looks like
Seeds are pairs (same first weights, same worlds), so the sign of each pair's difference is what chance may flip.
Exit code 1 if they can be told apart, 2 if that cannot be said.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
ENVS = {"CartPole-v1": 60_000, "Acrobot-v1": 100_000, "Pendulum-v1": 100_000}
BOTH = {"Pendulum-v1": {"gsde": False}}
"""Settings of both sides besides the preset's: the kernel had no gSDE when this was measured."""
GRID = 60
"""Points of a curve that is kept."""
EXACT = 14
"""Pairs up to which every choice of signs is tried."""
RESAMPLES = 20_000
LEVEL = 0.05


def sign_flip_p(differences: Sequence[float]) -> float:
    """How often chance signs give a mean at least as far from 0, two-sided; 1/2^(n-1) at the least."""
    values = np.asarray(differences, np.float64)
    size = len(values)
    if size <= EXACT:
        signs = np.array(list(product((-1.0, 1.0), repeat=size)))
    else:
        signs = np.random.default_rng(0).choice((-1.0, 1.0), size=(RESAMPLES, size))
        signs[0] = 1.0  # the signs that were seen are one of the ways it could have been
    means = np.abs(signs @ values)
    # A hair below, so that rounding does not lose the ones that are equal.
    return float(np.mean(means >= abs(values.sum()) * (1 - 1e-12)))


def interval(differences: Sequence[float]) -> tuple[float, float]:
    """95 % bootstrap interval of the mean."""
    values = np.asarray(differences, np.float64)
    draws = np.random.default_rng(0).choice(values, size=(RESAMPLES, len(values)))
    low, high = np.percentile(draws.mean(axis=1), [2.5, 97.5])
    return float(low), float(high)


def holm(p: Sequence[float]) -> list[float]:
    """p-values that may be looked at together: the smallest times n, the next times n - 1, never falling."""
    corrected, worst = [0.0] * len(p), 0.0
    for rank, index in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        worst = max(worst, min(1.0, p[index] * (len(p) - rank)))
        corrected[index] = worst
    return corrected


def train(env: str, steps: int, seed: int, settings: dict[str, Any]) -> dict[str, Any]:
    """One run: its curve on GRID points, the mean of its last third's episodes, and the area under the curve."""
    from surefoot.envs.make import make_world
    from surefoot.train.spec import make_spec
    from surefoot.train.training import Training

    action = make_world(env).action
    spec = make_spec(
        env, action, settings={**BOTH.get(env, {}), **settings, "seed": seed}, total_steps=steps, backend="auto"
    )
    training, begin = Training(spec), time.process_time()
    at: list[int] = []
    mean: list[float] = []
    late: list[float] = []
    report = None
    while not training.finished:
        report = training.update()
        fresh = [episode.return_ for episode in training.collector.episodes.take_fresh()]
        if training.env_steps > steps * 2 / 3:
            late += fresh
        recent = training.collector.episodes.recent()[0]
        if recent is not None:
            at.append(training.env_steps)
            mean.append(recent)
    training.close()
    assert report is not None
    curve = np.interp(np.linspace(0, steps, GRID), at, mean)
    return {
        "steps": steps,
        "path": report.path,
        "path_reason": report.path_reason,
        "cpu_seconds": time.process_time() - begin,
        "final_third": float(np.mean(late)) if late else mean[-1],
        "area": float(curve.mean()),
        "curve": [round(float(value), 3) for value in curve],
    }


def compare(runs: dict[str, dict[str, dict[str, Any]]], ours: str, other: str) -> list[dict[str, Any]]:
    """For each env and each of the two numbers: both means, the paired difference, its interval and its p."""
    rows: list[dict[str, Any]] = []
    for env, each in runs.items():
        seeds = [seed for seed in each[ours] if seed in each[other]]
        for number in ("final_third", "area"):
            mine, theirs = ([each[side][seed][number] for seed in seeds] for side in (ours, other))
            gap = [a - b for a, b in zip(mine, theirs, strict=True)]
            low, high = interval(gap)
            rows.append(
                {
                    "env": env,
                    "number": number,
                    "seeds": len(seeds),
                    ours: float(np.mean(mine)),
                    other: float(np.mean(theirs)),
                    "difference": float(np.mean(gap)),
                    "low": low,
                    "high": high,
                    "p": sign_flip_p(gap),
                }
            )
    for row, p in zip(rows, holm([row["p"] for row in rows]), strict=True):
        row["p_holm"] = p
    return rows


def verdict(rows: list[dict[str, Any]]) -> str:
    """ "indistinguishable", "they differ", or "too few seeds" where even the clearest difference would not count."""
    seeds = min(row["seeds"] for row in rows)
    if len(rows) * 2.0 ** (1 - seeds) >= LEVEL:
        return "too few seeds"
    return "indistinguishable" if all(row["p_holm"] >= LEVEL for row in rows) else "they differ"


def show(rows: list[dict[str, Any]], ours: str, other: str) -> None:
    """The table and the verdict."""
    print(f"{'env':<14}{'number':<13}{ours:>10}{other:>12}{'difference [95 %]':>30}{'p':>8}{'p (Holm)':>10}")
    for row in rows:
        gap = f"{row['difference']:+.1f} [{row['low']:+.1f}, {row['high']:+.1f}]"
        print(
            f"{row['env']:<14}{row['number']:<13}{row[ours]:>10.1f}{row[other]:>12.1f}{gap:>30}"
            f"{row['p']:>8.3f}{row['p_holm']:>10.3f}"
        )
    seeds, said = min(row["seeds"] for row in rows), verdict(rows)
    if said == "they differ":
        worst = min(rows, key=lambda row: row["p_holm"])
        print(f"{said}: {worst['env']}, {worst['number']}, by {worst['difference']:+.1f} (p {worst['p_holm']:.3f})")
    elif said == "indistinguishable":
        print(f"{said}: of {len(rows)} comparisons over {seeds} seeds none has a corrected p below {LEVEL}")
    else:
        print(f"{said}: {seeds} pairs of signs cannot give a corrected p below {LEVEL} in {len(rows)} comparisons")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", help=f"some of {', '.join(ENVS)}")
    parser.add_argument("--share", type=float, default=1.0, help="of the steps, to see that it works")
    parser.add_argument("--control", metavar="KEY=VALUE", help="torch with this setting changed, instead of the kernel")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    import torch

    from surefoot.errors import SurefootError

    torch.set_num_threads(1)
    ours, changed = ("native", "path=native") if args.control is None else (args.control, args.control)
    out = args.out or HERE / "results" / ("paths.json" if args.control is None else "paths-control.json")
    key, _, value = changed.partition("=")
    sides: dict[str, dict[str, Any]] = {ours: {"path": "torch", key: value}, "torch": {"path": "torch"}}
    kept = json.loads(out.read_text())["runs"] if out.exists() else {}
    chosen = [env for env in ENVS if args.only is None or env in args.only.split(",")]
    length = {env: int(ENVS[env] * args.share) for env in chosen}
    runs: dict[str, dict[str, dict[str, Any]]] = {env: {side: {} for side in sides} for env in chosen}
    for seed, env, (side, settings) in product(range(args.seeds), chosen, sides.items()):
        before = kept.get(env, {}).get(side, {}).get(str(seed), {})
        if before.get("steps") == length[env]:
            runs[env][side][str(seed)] = before
            continue
        try:
            row = train(env, length[env], seed, settings)
        except SurefootError as why:
            row = {"path": None, "path_reason": str(why)}
        if row["path"] != settings["path"]:
            print(f"the {settings['path']} path did not run: {row['path_reason']}", file=sys.stderr)
            return 2
        runs[env][side][str(seed)] = row
        told = f"{row['final_third']:.1f} in the last third, {row['cpu_seconds']:.1f} CPU-s"
        print(f"seed {seed + 1} of {args.seeds}: {env}, {side}: {told}", file=sys.stderr)
        write(out, runs, ours)
    rows = compare(runs, ours, "torch")
    write(out, runs, ours, rows)
    show(rows, ours, "torch")
    return {"indistinguishable": 0, "they differ": 1}.get(verdict(rows), 2)


def write(out: Path, runs: dict[str, Any], ours: str, rows: list[dict[str, Any]] | None = None) -> None:
    result = {
        "command": "make bench-paths",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "date": time.strftime("%Y-%m-%d"),
        "against": ours,
        "comparisons": rows or [],
        "verdict": verdict(rows) if rows else "not finished",
        "runs": runs,
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    fresh = out.with_suffix(".tmp")
    fresh.write_text(json.dumps(result, ensure_ascii=False) + "\n", encoding="utf-8")
    fresh.replace(out)


if __name__ == "__main__":
    sys.exit(main())
