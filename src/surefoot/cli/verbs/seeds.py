"""`surefoot train --seeds N`: train several seeds in parallel processes and summarize their scores."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from surefoot.cli.verbs.train import TrainArgs
from surefoot.envs.ids import is_code, short_name
from surefoot.train.diagnose.statistics import summarize

if TYPE_CHECKING:
    from surefoot.train.spec import RunSpec

# Episodes per evaluation: CartPole's and LunarLander's "solved" are defined over 100.
EPISODES = 100


def train_seeds(args: TrainArgs, spec: RunSpec) -> int:
    """Train every seed, evaluate each last checkpoint on 100 unseen episodes, print IQM and interval."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    base = args.name or f"{short_name(spec.env).replace('/', '-').replace(':', '-')}-{stamp}"
    waiting = [(seed, f"{base}-s{seed}") for seed in range(spec.seed, spec.seed + args.seeds)]
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
                running[name] = subprocess.Popen(command_for(args, seed, name), stderr=subprocess.PIPE, text=True)
            time.sleep(0.1)
            for name in [n for n, process in running.items() if process.poll() is not None]:
                _collect(name, running.pop(name), args.env, scores, failed, console)
    except KeyboardInterrupt:
        console.print("stopping; every seed saves a checkpoint")
        for process in running.values():
            process.wait()
        raise
    if scores:
        table = Table(title=f"last checkpoint, {EPISODES} deterministic episodes on unseen seeds")
        table.add_column("run")
        table.add_column("mean return", justify="right")
        for name in sorted(scores):
            table.add_row(name, f"{scores[name]:.1f}")
        console.print(table)
        summary = f"{summarize(list(scores.values()))}   {time.perf_counter() - begin:.0f} s"
        console.print(summary + (f"   failed: {len(failed)}" if failed else ""))
    return 2 if failed else 0


def command_for(args: TrainArgs, seed: int, name: str) -> list[str]:
    """Return the command that trains one seed; the directory of runs is inherited as $SUREFOOT_RUNS."""
    command = [sys.executable, "-m", "surefoot", "train", args.env, "--seed", str(seed), "--name", name]
    command += ["--display", "quiet", "--env-backend", args.env_backend]
    # Parallel seeds occupy the cores, so environment workers would only slow them down.
    chosen = [text.partition("=")[2] for text in args.set if text.startswith("workers=")]
    settings = [text for text in args.set if not text.startswith("workers=")]
    settings += ["workers=0"] if args.jobs > 1 and chosen in ([], ["auto"]) else [f"workers={x}" for x in chosen]
    for option, value in (
        ("--steps", args.steps),
        ("--config", args.config),
        ("--preset", args.preset),
        ("--from", args.from_run),
        ("--rollout-workers", None if args.rollout_workers == "here" else args.rollout_workers),
        ("--doctor", None if args.doctor == "on" else args.doctor),
        ("--telemetry", None if args.telemetry == "on" else args.telemetry),
        ("--ppo-log", args.ppo_log and args.ppo_log.with_stem(f"{args.ppo_log.stem}-s{seed}")),
    ):
        command += [] if value is None else [option, str(value)]
    for option, texts in (("--set", settings), ("--env-arg", args.env_arg), ("--track", args.track)):
        for text in texts:
            command += [option, text]
    return command


def _collect(
    name: str,
    process: subprocess.Popen[str],
    env: str,
    scores: dict[str, float],
    failed: list[str],
    console: Console,
) -> None:
    """Evaluate a run whose training has ended, and add its score or its name to the results."""
    errors = (process.stderr.read() if process.stderr else "").strip().splitlines()
    if process.returncode != 0:
        failed.append(name)
        console.print(f"  {name}: failed: {errors[-1] if errors else process.returncode}")
        return
    command = [sys.executable, "-m", "surefoot", "eval", name, "--json"]
    command += ["--episodes", str(EPISODES), *(["--env", env] if is_code(env) else [])]
    evaluation = subprocess.run(command, capture_output=True, text=True, check=False)
    if evaluation.returncode != 0:
        failed.append(name)
        console.print(f"  {name}: could not be evaluated: {evaluation.stderr.strip()}")
        return
    scores[name] = float(json.loads(evaluation.stdout)["mean"])
    console.print(f"  {name}: {scores[name]:.1f}")
