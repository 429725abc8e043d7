"""Does it learn? Every task from scratch with the settings a user gets from `surefoot train ENV`, over several seeds.

The measure is the *last* checkpoint, deterministic, 100 episodes on unseen seeds. Results are kept per seed in
results/learning.json, so that the benchmark can be stopped and go on; --fresh starts over.

python benchmarks/learning.py                          all tasks (hours on two cores)
python benchmarks/learning.py CartPole-v1 Acrobot-v1   some of them
python benchmarks/learning.py --sb3 PYTHON             Stable-Baselines3's defaults on the same seeds too
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.train.diagnose.statistics import summarize

HERE = Path(__file__).resolve().parent
EPISODES = 100
EVAL_SEED = 1_000_004
"""Of SB3's evaluation; ours is the run's seed plus the same number (train/evaluate.py)."""


@dataclass(frozen=True)
class Task:
    """One row of the table."""

    env: str
    steps: int
    seeds: int
    bar: float
    published: str
    preset: str | None = None
    sb3_seeds: int | None = None

    @property
    def name(self) -> str:
        return self.env if self.preset is None else f"{self.env} ({self.preset})"


TASKS = [
    Task("CartPole-v1", 100_000, 5, 475, "SB3 zoo 500.0 (tuned, 100k), CleanRL 490.0 (500k)"),
    Task("Acrobot-v1", 300_000, 5, -85, "SLM-Lab -81.3 (300k), CleanRL -86.4 (500k), SB3 zoo -73.5 (1M)"),
    Task("Pendulum-v1", 150_000, 5, -180, "SB3 zoo -172.2 (gSDE, 100k), SLM-Lab -174.9 (300k)"),
    Task("MountainCarContinuous-v0", 100_000, 5, 90, "solved is 90"),
    Task(
        "HalfCheetah-v5",
        1_000_000,
        3,
        5000,
        "tuned: SB3 zoo 5819.1 (v3), Tianshou 5783.9 (v3); defaults: CleanRL 1442.6 (v4)",
    ),
    Task("Hopper-v5", 1_000_000, 3, 2100, "CleanRL 2382.9 (v4), SB3 zoo 2410.4 (v3)"),
    Task("LunarLander-v3", 1_000_000, 5, 240, "SB3 zoo 242.1 (v2, 1M)"),
]


class Results:
    """Scores by task, side and seed, written down after each."""

    def __init__(self, path: Path, fresh: bool) -> None:
        self.path, self.lock = path, threading.Lock()
        self.scores: dict[str, dict[str, dict[str, Any]]] = {}
        if fresh:
            path.unlink(missing_ok=True)
        if path.exists():
            self.scores = json.loads(path.read_text())["scores"]

    def get(self, task: Task, side: str, seed: int) -> dict[str, Any] | None:
        return self.scores.get(task.name, {}).get(side, {}).get(str(seed))

    def put(self, task: Task, side: str, seed: int, score: dict[str, Any]) -> None:
        with self.lock:
            if self.path.exists():  # another process may have written meanwhile
                for name, sides in json.loads(self.path.read_text())["scores"].items():
                    for other, seeds in sides.items():
                        known = self.scores.setdefault(name, {}).setdefault(other, {})
                        known.update({key: value for key, value in seeds.items() if key not in known})
            self.scores.setdefault(task.name, {}).setdefault(side, {})[str(seed)] = score
            self.path.parent.mkdir(exist_ok=True)
            body = {"command": "make bench-learning", "episodes": EPISODES, "scores": self.scores}
            self.path.write_text(json.dumps(body, indent=2, sort_keys=True) + "\n")


def last_json(command: list[str]) -> Any:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}:\n{done.stderr[-1500:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def ours(task: Task, seed: int, keep: Path | None) -> dict[str, Any]:
    root = Path(tempfile.mkdtemp(prefix="surefoot-learning-"))
    surefoot = [sys.executable, "-m", "surefoot"]
    command = [*surefoot, "train", task.env, "--steps", str(task.steps), "--seed", str(seed), "--runs", str(root)]
    command += ["--name", "run", "--display", "quiet", *(["--preset", task.preset] if task.preset else [])]
    before = os.times()
    trained = subprocess.run(command, capture_output=True, text=True, check=False)
    after = os.times()
    if trained.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}:\n{trained.stderr[-1500:]}")
    score = last_json([*surefoot, "eval", "run", "--runs", str(root), "--episodes", str(EPISODES), "--json"])
    curve = json.loads(
        subprocess.run(
            [sys.executable, str(HERE / "workloads/curve.py"), str(root / "run")],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )
    if keep is not None:
        shutil.copytree(root / "run", keep / f"{task.name}-s{seed}".replace(" ", "-"), dirs_exist_ok=True)
    shutil.rmtree(root)
    return {"mean": score["mean"], "std": score["std"], "curve": curve, "wall": after.elapsed - before.elapsed}


def sb3(task: Task, seed: int, python: str) -> dict[str, Any]:
    script = str(HERE / "workloads/sb3_learn.py")
    return last_json(
        [python, script, task.env, str(task.steps), str(seed), str(EPISODES), str(EVAL_SEED + 1000 * seed)]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("envs", nargs="*", help="only these (default all)")
    parser.add_argument("--seeds", type=int, help="seeds a task (default: 5, 3 for MuJoCo)")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--sb3", help="an interpreter with stable_baselines3: its defaults on the same seeds")
    parser.add_argument("--only", choices=("surefoot", "sb3"), help="measure one side, print both")
    parser.add_argument("--out", type=Path, default=HERE / "results/learning.json")
    parser.add_argument("--keep", type=Path, help="keep the run directories here")
    parser.add_argument("--fresh", action="store_true")
    args = parser.parse_args()
    results = Results(args.out, args.fresh)
    tasks = [task for task in TASKS if not args.envs or task.env in args.envs or task.name in args.envs]
    work: list[tuple[Task, str, int]] = []
    for task in tasks:
        for seed in range(args.seeds or task.seeds):
            for side in ("surefoot", *(("sb3",) if args.sb3 and task.preset is None else ())):
                if results.get(task, side, seed) is None and args.only in (None, side):
                    work += [(task, side, seed)]

    def one(item: tuple[Task, str, int]) -> None:
        task, side, seed = item
        score = ours(task, seed, args.keep) if side == "surefoot" else sb3(task, seed, args.sb3)
        results.put(task, side, seed, score)
        print(f"{task.name} seed {seed} {side}: {score['mean']:.1f}", file=sys.stderr, flush=True)

    with ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(one, work))
    return report(tasks, results)


def report(tasks: list[Task], results: Results) -> int:
    missed = 0
    print("| task | steps | seeds | bar | ours: IQM [95 %] (min) | reached | SB3 defaults, same seeds | published |")
    print("|---|---|---|---|---|---|---|---|")
    for task in tasks:
        found = results.scores.get(task.name, {})
        mine = [entry["mean"] for entry in found.get("surefoot", {}).values()]
        if not mine:
            continue
        told = summarize(mine)
        over = sum(score >= task.bar for score in mine)
        missed += told.iqm < task.bar
        peer = [entry["mean"] for entry in found.get("sb3", {}).values()]
        other = summarize(peer) if peer else None
        beside = f"{other.iqm:.1f} [{other.low:.1f}, {other.high:.1f}] n={other.count}" if other else "–"
        print(
            f"| {task.name} | {task.steps:,} | {told.count} | {task.bar:g} | {told.iqm:.1f} [{told.low:.1f}, {told.high:.1f}] "
            f"({told.minimum:.1f}) | {over}/{told.count} | {beside} | {task.published} |"
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
