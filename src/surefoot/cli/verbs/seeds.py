"""Several seeds of one task, side by side in processes of their own, and what they say together."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from surefoot.cli.verbs.train import TrainArgs
from surefoot.envs.ids import is_code, short_name
from surefoot.train.diagnose.statistics import summarize
from surefoot.train.rundir.rundir import runs_root

if TYPE_CHECKING:
    from surefoot.train.spec import RunSpec

EPISODES = 100


def train_seeds(args: TrainArgs, spec: RunSpec) -> int:
    """Train every seed, evaluate each one's last checkpoint on 100 unseen episodes, print IQM and interval."""
    root, first = runs_root(args.runs), spec.seed
    stamp = time.strftime("%Y%m%d-%H%M%S")
    base = args.name or f"{short_name(spec.env).replace('/', '-').replace(':', '-')}-{stamp}"
    waiting = [(seed, f"{base}-s{seed}") for seed in range(first, first + args.seeds)]
    console, begin = Console(highlight=False), time.perf_counter()
    console.print(
        f"{spec.env}: {args.seeds} seeds of {spec.total_steps:,} steps, {args.jobs} at a time, preset {spec.preset}"
    )
    running: dict[str, subprocess.Popen[str]] = {}
    scores: dict[str, float] = {}
    failed: list[str] = []
    try:
        while waiting or running:
            while waiting and len(running) < args.jobs:
                seed, name = waiting.pop(0)
                running[name] = subprocess.Popen(_command(args, seed, name, root), stderr=subprocess.PIPE, text=True)
            time.sleep(0.1)
            for name in [n for n, process in running.items() if process.poll() is not None]:
                _collect(name, running.pop(name), root, args.env, scores, failed, console)
    except KeyboardInterrupt:
        console.print("stopping; every seed saves what it has")
        for process in running.values():
            process.wait()
        raise
    _print(console, scores, failed, time.perf_counter() - begin)
    return 2 if failed else 0


def _command(args: TrainArgs, seed: int, name: str, root: Path) -> list[str]:
    command = [sys.executable, "-m", "surefoot", "train", args.env, "--seed", str(seed), "--name", name]
    command += ["--runs", str(root), "--display", "quiet", "--backend", args.backend, "--threads", str(args.threads)]
    # Seeds side by side leave no core to a worker.
    workers = "0" if args.jobs > 1 and args.workers in (None, "auto") else args.workers
    for flag, value in (
        ("--workers", workers),
        ("--steps", args.steps),
        ("--config", args.config),
        ("--preset", args.preset),
        ("--from", args.from_run),
        ("--eval-every", args.eval_every),
        ("--eval-episodes", args.eval_episodes),
        ("--checkpoint-every", args.checkpoint_every),
        ("--record", None if args.record == "on" else args.record),
        ("--minibatches", args.minibatches or None),
        ("--ppo-log", args.ppo_log and args.ppo_log.with_stem(f"{args.ppo_log.stem}-s{seed}")),
    ):
        command += [] if value is None else [flag, str(value)]
    for flag, texts in (("--set", args.set), ("--env-arg", args.env_arg), ("--track", args.track)):
        for text in texts:
            command += [flag, text]
    return command + (["--tensorboard"] if args.tensorboard else [])


def _collect(
    name: str,
    process: subprocess.Popen[str],
    root: Path,
    env: str,
    scores: dict[str, float],
    failed: list[str],
    console: Console,
) -> None:
    said = (process.stderr.read() if process.stderr else "").strip().splitlines()
    if process.returncode != 0:
        failed.append(name)
        console.print(f"  {name}: failed: {said[-1] if said else process.returncode}")
        return
    command = [sys.executable, "-m", "surefoot", "eval", name, "--runs", str(root), "--json"]
    command += ["--episodes", str(EPISODES), *(["--env", env] if is_code(env) else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        failed.append(name)
        console.print(f"  {name}: could not be evaluated: {done.stderr.strip()}")
        return
    scores[name] = float(json.loads(done.stdout)["mean"])
    console.print(f"  {name}: {scores[name]:.1f}")


def _print(console: Console, scores: dict[str, float], failed: list[str], seconds: float) -> None:
    if not scores:
        return
    table = Table(title=f"last checkpoint, {EPISODES} deterministic episodes on unseen seeds")
    table.add_column("run")
    table.add_column("mean return", justify="right")
    for name in sorted(scores):
        table.add_row(name, f"{scores[name]:.1f}")
    console.print(table)
    console.print(
        f"{summarize(list(scores.values()))}   {seconds:.0f} s" + (f"   failed: {len(failed)}" if failed else "")
    )
