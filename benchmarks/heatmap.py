"""CPU-seconds of one update over widths, depths, observations, minibatches and envs: kernel, torch path, SB3.

python benchmarks/heatmap.py            a width × minibatch grid, and a sweep of each other size around W1; < 15 minutes
python benchmarks/heatmap.py --quick    a few cells, to see that it works
Writes benchmarks/results/heatmap.json and docs/assets/heatmap.png, and names the cells where the kernel is slower.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from peers import PEERS
from speed import ONE_THREAD

HERE = Path(__file__).resolve().parent
WIDTHS, MINIBATCHES = (32, 64, 128, 256, 512, 1024), (64, 256, 1024, 4096, 8192)
DEPTHS, OBS, ENVS = (1, 2, 3, 4), (4, 17, 64, 128, 400), (1, 8, 64, 512, 4096)
SLOWER = 1.05
WORK = 3e10
"""Floating-point operations that one measured update may take; larger cells make fewer gradient steps."""

Cell = dict[str, int]


def cell(*, width: int = 64, depth: int = 2, obs: int = 4, minibatch: int = 256, envs: int = 8) -> Cell:
    """Four epochs of four minibatches, as W1; fewer of both where that would take too long."""
    made = {"width": width, "depth": depth, "obs": obs, "minibatch": minibatch, "envs": envs}
    for epochs, minibatches in ((4, 4), (1, 4), (1, 1)):
        made |= {"epochs": epochs, "steps": max(1, minibatches * minibatch // envs)}
        if flops(made) <= WORK:
            break
    return made


def flops(made: Cell) -> float:
    """Of one update: forward and weight gradients of every layer, input gradients of all but the first."""
    total = 0.0
    for outputs in (2, 1):
        sizes = [made["obs"], *[made["width"]] * made["depth"], outputs]
        weights = [a * b for a, b in pairwise(sizes)]
        total += 6.0 * sum(weights) - 2.0 * weights[0]
    return total * made["envs"] * made["steps"] * made["epochs"]


def design(quick: bool) -> dict[str, list[Cell]]:
    """{sweep: cells}. With many envs the minibatch is a quarter of 32 steps of all of them, as W3."""
    widths, minibatches = ((32, 64), (64, 256)) if quick else (WIDTHS, MINIBATCHES)
    found = {
        "grid": [cell(width=w, minibatch=m) for w in widths for m in minibatches],
        "depth": [cell(depth=d) for d in DEPTHS],
        "obs": [cell(obs=n) for n in OBS],
        "envs": [cell(envs=n, minibatch=max(8, 8 * n)) for n in ENVS],
    }
    return {name: cells if name == "grid" else cells[:2] for name, cells in found.items()} if quick else found


class Side:
    """A process that is given cells and answers with seconds."""

    def __init__(self, python: str, script: str, *words: str) -> None:
        command = [python, str(HERE / "workloads" / script), *words]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, env=os.environ | ONE_THREAD, **pipes)
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(self.process.pid, {max(os.sched_getaffinity(0))})

    def ask(self, question: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the process that was asked for {question} stopped; what it said is above")
        return json.loads(line)


def measure(args: argparse.Namespace) -> dict[str, Any]:
    sides = {path: Side(sys.executable, "surefoot_update.py", path) for path in ("native", "torch")}
    if Path(args.peer).exists():
        sides["sb3"] = Side(args.peer, "sb3_update.py")
    peaks = [sides["torch"].ask("sgemm")["gflops"]]
    first = sides["native"].ask(cell())
    note = "" if first["path"] == "native" else f"the kernel did not run: {first['path_reason']}"
    if note:
        print(note, file=sys.stderr)
        del sides["native"]
    sweeps = design(args.quick)
    keys = list({tuple(sorted(c.items())): c for cells in sweeps.values() for c in cells}.values())
    rows: list[dict[str, Any]] = []
    for number, made in enumerate(keys, 1):
        taken: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(args.rounds):
            for name, side in sides.items():
                answer = side.ask(made)
                if answer.get("path", name) != name:
                    raise SystemExit(f"{in_words(made)} took the {answer['path']} path: {answer['path_reason']}")
                taken[name].append(answer["seconds"])
        row = {**made, "flops": flops(made), **{name: statistics.median(each) for name, each in taken.items()}}
        rows.append(row)
        told = ", ".join(f"{name} {row[name] * 1e3:.2f} ms" for name in sides)
        print(f"{number} of {len(keys)}: {in_words(made)}: {told}", file=sys.stderr)
    # Twice and the better one: a neighbour on the machine can only make it slower.
    peak = max([*peaks, sides["torch"].ask("sgemm")["gflops"]])
    return {
        "command": "make bench-heatmap",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "date": time.strftime("%Y-%m-%d"),
        "rounds": args.rounds,
        "note": note,
        "sgemm_gflops": peak,
        "share_of_sgemm": shares(rows, peak),
        "cells": rows,
        "sweeps": {name: [keys.index(c) for c in cells] for name, cells in sweeps.items()},
    }


def shares(rows: list[dict[str, Any]], peak: float) -> dict[str, float]:
    """Of a matrix product's speed, what a whole update of the 64 × 64 net reaches at two sizes of minibatch."""
    found: dict[str, float] = {}
    for row in rows:
        plain = (row["width"], row["depth"], row["obs"], row["envs"]) == (64, 2, 4, 8)
        if plain and row["minibatch"] in (256, 8192):
            ours = "native" if "native" in row else "torch"
            found[f"{ours}, minibatch {row['minibatch']}"] = row["flops"] / row[ours] / 1e9 / peak
    return found


def in_words(made: dict[str, Any]) -> str:
    return (
        f"{made['depth']} × {made['width']}, obs {made['obs']}, minibatch {made['minibatch']}, "
        f"{made['envs']} envs × {made['steps']} steps, {made['epochs']} epochs"
    )


def show(result: dict[str, Any]) -> None:
    if result["note"]:
        print(result["note"])
    slow = [row for row in result["cells"] if row.get("native", 0.0) > SLOWER * row["torch"]]
    for row in slow:
        print(f"the kernel is {row['native'] / row['torch']:.2f} × torch's time: {in_words(row)}")
    if not slow and not result["note"]:
        print(f"the kernel is nowhere slower than torch by more than {SLOWER - 1:.0%} ({len(result['cells'])} cells)")
    print(f"a matrix product of 1024³ reaches {result['sgemm_gflops']:.1f} GFLOP/s on one core")
    for name, share in result["share_of_sgemm"].items():
        print(f"an update reaches {share:.1%} of that: {name}")


def draw(result: dict[str, Any], out: Path) -> None:
    """Two grids of ratios, and below them the other sizes one at a time."""
    import matplotlib

    matplotlib.use("agg")
    import numpy as np
    from matplotlib import pyplot
    from matplotlib.colors import LogNorm

    cells, ours = result["cells"], "torch" if result["note"] else "native"
    peers = [name for name in ("torch", "sb3") if name != ours and name in cells[0]]
    titles = {"native": "kernel", "torch": "torch path", "sb3": "SB3"}
    grid = [cells[i] for i in result["sweeps"]["grid"]]
    widths = sorted({row["width"] for row in grid})
    minibatches = sorted({row["minibatch"] for row in grid})
    figure, axes = pyplot.subplots(2, 3, figsize=(13, 7.5), layout="constrained")
    for axis, peer in zip(axes[0], peers, strict=False):
        table = np.array(
            [
                [next(r[ours] / r[peer] for r in grid if (r["width"], r["minibatch"]) == (w, m)) for m in minibatches]
                for w in widths
            ]
        )
        axis.imshow(table, cmap="RdYlGn_r", norm=LogNorm(0.05, 20), aspect="auto")
        axis.set_xticks(range(len(minibatches)), [str(m) for m in minibatches])
        axis.set_yticks(range(len(widths)), [str(w) for w in widths])
        axis.set(xlabel="minibatch", ylabel="width of 2 layers", title=f"{titles[ours]} ÷ {titles[peer]}")
        for y, x in np.ndindex(*table.shape):
            axis.text(x, y, f"{table[y, x]:.2f}", ha="center", va="center", fontsize=9)
    for axis in axes[0][len(peers) :]:
        axis.axis("off")
    where = f"CPU time of one update,\nless is better\n{result['machine']}\n{result['date']}"
    axes[0][2].text(0.0, 0.5, where, transform=axes[0][2].transAxes, va="center")
    for axis, factor in zip(axes[1], ("depth", "obs", "envs"), strict=True):
        sweep = [cells[i] for i in result["sweeps"][factor]]
        for peer in peers:
            axis.plot([r[factor] for r in sweep], [r[ours] / r[peer] for r in sweep], "o-", label=f"÷ {titles[peer]}")
        axis.axhline(1.0, color="grey", lw=0.8)
        axis.set(xlabel=factor, xscale="log", yscale="log", ylim=(0.02, 2.0), title=f"{titles[ours]} over {factor}")
        axis.set_xticks([r[factor] for r in sweep], [str(r[factor]) for r in sweep])
        axis.set_yticks([0.02, 0.05, 0.1, 0.2, 0.5, 1, 2], ["0.02", "0.05", "0.1", "0.2", "0.5", "1", "2"])
        axis.minorticks_off()
        axis.legend()
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=90, metadata={"Software": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", default=str(PEERS["sb3"].python), help="an interpreter with stable_baselines3")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="a few cells only")
    parser.add_argument("--out", type=Path, default=HERE / "results/heatmap.json")
    parser.add_argument("--png", type=Path, default=HERE.parent / "docs/assets/heatmap.png")
    args = parser.parse_args()
    result = measure(args)
    args.out.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    draw(result, args.png)
    show(result)


if __name__ == "__main__":
    main()
