"""Does a manager with a worker get through nine rooms that one policy does not? surefoot/LongMaze-v0, five seeds.

Beside plain PPO at nine settings and RND. The manager is told where the rooms are, which nobody tells the others: that is
the point of a sub-goal, and the table compares with and without it. The measure is that of explore.py.

python benchmarks/hierarchy.py            about 5 minutes on one core
python benchmarks/hierarchy.py manager    only sides whose name has one of these in it
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from explore import COMMON, CURIOUS, HERE, SEEDS, Side, chosen, measure, plain_sides, report, thinned, train
from surefoot.envs.api import Arrays
from surefoot.envs.builtin.maze import LongMaze
from surefoot.envs.goals import GoalSpec, landmarks
from surefoot.envs.make import make_world
from surefoot.learn.config import PPOConfig
from surefoot.train.algorithms.hierarchy import Hierarchy, HierarchySpec

ENV, TOTAL = "surefoot/LongMaze-v0", 500_000
MANAGER = "manager and worker"
SIDES = [
    *plain_sides(),
    Side("rnd", None, CURIOUS, {"curiosity": "rnd", "ext_coef": 5.0}),
    Side(MANAGER, True, {}),
]


def rooms() -> GoalSpec:
    """The middles of LongMaze's rooms and the way out; one can be sent to where one is, the room before or the next."""
    maze = LongMaze()

    def place(obs: Arrays) -> np.ndarray:
        return maze.where(obs["obs"])

    return landmarks(maze.landmarks, place, near=0.5, among=maze.nearby)


def spec(total: int, seed: int) -> HierarchySpec:
    """The one setting that is measured."""
    return HierarchySpec(
        total_steps=total,
        every=20,
        worker=PPOConfig(**COMMON, lr=1e-3, ent_coef=0.05, seed=seed),
        manager=PPOConfig(
            lr=1e-3, ent_coef=0.01, minibatch_size=256, epochs=4, normalize_advantage="off", device="cpu"
        ),
        progress=1.0,
    )


def climb(total: int, seed: int) -> dict[str, Any]:
    """One run of both policies, told as `explore.train` tells one of one."""
    begin = time.process_time()
    both = Hierarchy(lambda streams: make_world(ENV, streams), rooms(), spec(total, seed))
    first, points = None, list[tuple[int, float]]()
    for _ in both:
        if first is None and any(each.return_ > 0 for each in both.episodes.take_fresh()):
            first = both.env_steps
        points.append((both.env_steps, both.episodes.recent()[0] or 0.0))
    cpu = time.process_time() - begin
    played = both.evaluate(100)
    return {
        "success": played.mean,
        "length": sum(played.lengths) / len(played.lengths),
        "first_reward": first,
        "best": max(success for _, success in points),
        "curve": thinned(points),
        "cpu_seconds": round(cpu, 2),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="only sides whose name holds one of these (default all)")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--steps", type=int, default=TOTAL)
    parser.add_argument("--out", type=Path, default=HERE / "results/hierarchy.json")
    parser.add_argument("--fresh", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)

    def run(side: Side, seed: int) -> dict[str, Any]:
        return climb(args.steps, seed) if side.name == MANAGER else train(ENV, args.steps, side, seed)

    sides = chosen(SIDES, args.words)
    runs = measure(
        args.out,
        "python benchmarks/hierarchy.py",
        sides,
        run,
        about={"env": ENV, "steps": args.steps},
        seeds=args.seeds,
        fresh=args.fresh,
    )
    return report(sides, runs)


if __name__ == "__main__":
    sys.exit(main())
