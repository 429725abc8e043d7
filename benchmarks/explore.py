"""Is the first reward ever found? surefoot/Maze-v0 by plain PPO at nine settings, by RND and by ICM, five seeds each.

The measure is the rate of success over 100 episodes with the policy as it samples, after the last update. Results are
kept per run in results/explore.json, so that the benchmark can be stopped and go on; --fresh starts over.

python benchmarks/explore.py            about 7 minutes on one core
python benchmarks/explore.py rnd icm    only sides whose name has one of these in it
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from surefoot.envs.make import make_world
from surefoot.learn.config import PPOConfig
from surefoot.nets.config import NetConfig
from surefoot.train.config import CollectConfig
from surefoot.train.evaluate import EVAL_SEED_OFFSET, play
from surefoot.train.spec import RunSpec
from surefoot.train.training import Training

HERE = Path(__file__).resolve().parent
SEEDS = 5
SOLVED = 0.9
POINTS = 25
"""Of a learning curve."""
COMMON: dict[str, Any] = {"rollout_steps": 64, "envs": 64, "minibatch_size": 1024, "epochs": 4, "device": "cpu"}
"""The same for every side; what is left out has PPOConfig's defaults."""


@dataclass(frozen=True)
class Side:
    """One way to try it."""

    name: str
    expected: bool | None
    """True if every seed should solve it, False if none should, None if it is only reported."""
    ppo: dict[str, Any]
    collect: dict[str, Any] = field(default_factory=dict[str, Any])


def plain_sides() -> list[Side]:
    """PPO without a bonus, over the settings that decide how much it explores."""
    return [
        Side(f"ppo lr={lr:g} ent={ent:g}", False, {"lr": lr, "ent_coef": ent})
        for lr in (1e-4, 3e-4, 1e-3)
        for ent in (0.0, 0.01, 0.05)
    ]


ENV, TOTAL = "surefoot/Maze-v0", 1_000_000
CURIOUS: dict[str, Any] = {"lr": 1e-3, "ent_coef": 0.01}
SIDES = [
    *plain_sides(),
    Side("rnd", True, CURIOUS, {"curiosity": "rnd", "ext_coef": 5.0}),
    Side("icm", None, CURIOUS, {"curiosity": "icm", "ext_coef": 5.0}),
]


def train(env: str, total: int, side: Side, seed: int) -> dict[str, Any]:
    """One run: its curve (steps, success of the last 100 episodes), when G was first reached, and how it ended."""
    spec = RunSpec(
        env=env,
        preset="sb3",
        total_steps=total,
        ppo=PPOConfig(**COMMON, **side.ppo, seed=seed),
        net=NetConfig(),
        collect=CollectConfig(**side.collect),
        eval_every=0,
        checkpoint_every=total,
    )
    begin, training, first, points = time.process_time(), Training(spec), None, list[tuple[int, float]]()
    for _ in training:
        episodes = training.collector.episodes
        if first is None and any(each.return_ > 0 for each in episodes.take_fresh()):
            first = training.env_steps
        points.append((training.env_steps, episodes.recent()[0] or 0.0))
    cpu = time.process_time() - begin
    played = play(
        training.policy, make_world(env, 25), 100, seed=seed + EVAL_SEED_OFFSET, deterministic=False, path="torch"
    )
    return {
        "success": played.mean,
        "length": sum(played.lengths) / len(played.lengths),
        "first_reward": first,
        "best": max(success for _, success in points),
        "curve": thinned(points),
        "cpu_seconds": round(cpu, 2),
    }


def thinned(points: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """At most POINTS of them, the last one always among them."""
    every = max(1, -(-len(points) // POINTS))
    return points[::-1][::every][::-1]


def measure(
    path: Path,
    command: str,
    sides: list[Side],
    run: Callable[[Side, int], dict[str, Any]],
    *,
    about: dict[str, Any],
    seeds: int,
    fresh: bool,
) -> dict[str, dict[str, Any]]:
    """{side: {seed: run}}: what is in the file already, and the rest of `sides` run and written there one by one."""
    known = json.loads(path.read_text())["runs"] if path.exists() and not fresh else {}
    for side in sides:
        for seed in range(seeds):
            if str(seed) in known.get(side.name, {}):
                continue
            told = run(side, seed)
            known.setdefault(side.name, {})[str(seed)] = told
            print(f"{side.name} seed {seed}: {told['success']:.2f}, first at {told['first_reward']}", file=sys.stderr)
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps({"command": command, **about, "runs": known}, indent=1) + "\n")
    return known


def report(sides: list[Side], runs: dict[str, dict[str, Any]]) -> int:
    """Print the table; 1 if a side did not do what was expected of it."""
    wrong = 0
    print(
        "| | seeds | solved at the end | success at the end: mean (each seed) | seeds that ever found G | CPU s a run |"
    )
    print("|---|---|---|---|---|---|")
    for side in sides:
        found = list(runs.get(side.name, {}).values())
        if not found:
            continue
        ends = [each["success"] for each in found]
        solved = sum(success >= SOLVED for success in ends)
        ever = sum(each["first_reward"] is not None for each in found)
        wrong += side.expected is not None and solved != (len(found) if side.expected else 0)
        each = ", ".join(f"{success:.2f}" for success in ends)
        seconds = sum(run["cpu_seconds"] for run in found) / len(found)
        print(
            f"| {side.name} | {len(found)} | {solved}/{len(found)} | {sum(ends) / len(ends):.2f} ({each}) | {ever} "
            f"| {seconds:.1f} |"
        )
    return 1 if wrong else 0


def chosen(sides: list[Side], words: list[str]) -> list[Side]:
    """Those whose name holds one of `words`; all of them without."""
    return [side for side in sides if not words or any(word in side.name for word in words)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="only sides whose name holds one of these (default all)")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--steps", type=int, default=TOTAL)
    parser.add_argument("--out", type=Path, default=HERE / "results/explore.json")
    parser.add_argument("--fresh", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    sides = chosen(SIDES, args.words)
    runs = measure(
        args.out,
        "python benchmarks/explore.py",
        sides,
        lambda side, seed: train(ENV, args.steps, side, seed),
        about={"env": ENV, "steps": args.steps},
        seeds=args.seeds,
        fresh=args.fresh,
    )
    return report(sides, runs)


if __name__ == "__main__":
    sys.exit(main())
