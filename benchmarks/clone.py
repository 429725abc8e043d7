"""What recorded episodes are worth: cloning alone, PPO from the clone, and PPO from scratch, over several seeds.

For each task a teacher is trained here with its preset, or half trained, and plays N episodes. Each seed then has two
runs with the same settings: PPO from fresh weights, and PPO from a clone of the episodes (critic included). Counted are
env steps until 50 deterministic episodes on unseen seeds reach the bar twice in a row, looked at about every thousand
steps; a run that never gets there counts with all its steps. The teacher's own steps and the recorded ones are not counted.

python benchmarks/clone.py                      all tasks, 5 seeds
python benchmarks/clone.py CartPole-v1 --seeds 2
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from surefoot.data.seeds import seed_for
from surefoot.data.trajectory import Recording
from surefoot.envs.make import make_world
from surefoot.learn.schedule import Linear, value_at
from surefoot.train.algorithms.clone import CloneConfig, clone, reward_scale_of
from surefoot.train.device import pin_threads
from surefoot.train.evaluate import EVAL_SEED_OFFSET, play
from surefoot.train.interop.recording import record
from surefoot.train.spec import RunSpec, make_spec
from surefoot.train.training import Training

HERE = Path(__file__).resolve().parent
EPISODES = 50
LOOK_EVERY = 1000
EXPERT_SEED = 100


@dataclass(frozen=True)
class Task:
    """One world, how long a run lasts, how long its teacher learned, how many episodes it shows, what counts as solved."""

    env: str
    steps: int
    taught_at: int
    episodes: tuple[int, ...]
    bar: float
    sampled: bool = False
    """The teacher samples its actions, as in training, instead of taking the likeliest."""
    gentle: bool = False
    """PPO goes on from the clone with a tenth of the learning rate."""
    settings: tuple[tuple[str, Any], ...] = ()
    """What differs from the preset: Pendulum's has gSDE, which the kernel did not have when this was measured."""

    @property
    def name(self) -> str:
        teacher = "" if self.taught_at == self.steps else f", teacher of {self.taught_at:,} steps"
        return f"{self.env}{teacher}{', sampled' if self.sampled else ''}{', then lr / 10' if self.gentle else ''}"


TASKS = [
    Task("CartPole-v1", 100_000, 100_000, (1, 5), 475),
    Task("CartPole-v1", 100_000, 6_000, (5, 20), 475),
    Task("CartPole-v1", 100_000, 6_000, (5, 20), 475, sampled=True),
    Task("Acrobot-v1", 300_000, 300_000, (1, 5), -85),
    Task("Pendulum-v1", 150_000, 150_000, (5, 20), -180, settings=(("gsde", False),)),
    Task("Pendulum-v1", 150_000, 150_000, (20, 50), -180, sampled=True, settings=(("gsde", False),)),
    Task("Pendulum-v1", 150_000, 150_000, (20, 50), -180, sampled=True, gentle=True, settings=(("gsde", False),)),
]


def spec_of(task: Task, seed: int, *, cloned: bool = False) -> RunSpec:
    action = make_world(task.env, 1).action
    settings = {"seed": seed, **dict(task.settings)}
    spec = make_spec(task.env, action, settings=settings, total_steps=task.steps, eval_every=0)
    if not (cloned and task.gentle):
        return spec
    start = value_at(spec.ppo.lr, progress=0.0, updates=0)
    return replace(spec, ppo=spec.ppo.replace(lr=Linear(start / 10)))


def score(training: Training, episodes: int = EPISODES, *, offset: int = 0) -> float:
    world = training.make(10)
    seed = training.spec.seed + EVAL_SEED_OFFSET + offset
    played = play(training.policy, world, episodes, seed=seed, device=training.device)
    world.close()
    return played.mean


def expert(task: Task) -> tuple[Recording, float]:
    """As many episodes as any row needs, and the teacher's own score."""
    training = Training(spec_of(task, EXPERT_SEED))
    while training.env_steps < task.taught_at:
        training.update()
    world = training.make(1)
    seed = EXPERT_SEED + EVAL_SEED_OFFSET + 1
    shown = record(training.policy, world, max(task.episodes), seed=seed, deterministic=not task.sampled)
    world.close()
    reached = score(training, 100)
    training.close()
    return shown, reached


def imitate(training: Training, shown: Recording, count: int) -> None:
    """Clone the first `count` episodes, as `surefoot clone` does."""
    episodes = shown.episodes[:count]
    scaled = training.spec.collect.normalize_reward
    scale = reward_scale_of(episodes, training.collector.scaler) if scaled else 1.0
    generator = torch.Generator().manual_seed(seed_for("clone", training.spec.seed))
    config = CloneConfig(gamma=training.spec.ppo.gamma)
    for _ in clone(training.policy, episodes, config, generator=generator, reward_scale=scale):
        pass


def steps_to_bar(training: Training, bar: float) -> tuple[int, bool]:
    """Env steps until the bar is reached, and whether it was."""
    next_look, reached_at = 0, None
    while True:
        if training.env_steps >= next_look:
            good = score(training) >= bar
            if good and reached_at is not None:
                return reached_at, True
            reached_at = training.env_steps if good else None
            next_look = training.env_steps + LOOK_EVERY
        if training.finished:
            return training.env_steps, False
        training.update()


def one(task: Task, seed: int, shown: Recording | None, count: int) -> dict[str, Any]:
    training, begin = Training(spec_of(task, seed, cloned=shown is not None)), time.process_time()
    if shown is not None:
        imitate(training, shown, count)
    cloned_cpu = time.process_time() - begin
    first = score(training, 100, offset=7)
    steps, reached = steps_to_bar(training, task.bar)
    training.close()
    return {"first": first, "steps": steps, "reached": reached, "clone_cpu": cloned_cpu}


def summary(runs: list[dict[str, Any]]) -> tuple[float, str]:
    """Median of the steps, and the cell of the table."""
    steps = sorted(run["steps"] for run in runs)
    middle, reached = statistics.median(steps), sum(run["reached"] for run in runs)
    return middle, f"{middle:,.0f} ({steps[0]:,} … {steps[-1]:,}; {reached}/{len(runs)})"


def table(found: dict[str, Any]) -> str:
    lines = [
        "| task | bar | teacher | episodes (steps) | clone alone | steps to the bar: clone, PPO | PPO from scratch | saved |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, task in found.items():
        base, beside = summary(task["scratch"])
        for count, arm in task["clone"].items():
            alone = [run["first"] for run in arm["runs"]]
            middle, cell = summary(arm["runs"])
            saved = f"{1 - middle / base:.0%}" if base else "–"
            lines.append(
                f"| {name} | {task['bar']:g} | {task['teacher']:.1f} | {count} ({arm['recorded']:,}) | "
                f"{statistics.median(alone):.1f} ({min(alone):.1f} … {max(alone):.1f}) | {cell} | {beside} | {saved} |"
            )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("envs", nargs="*", help="only these (default all)")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=HERE / "results/clone.json")
    args = parser.parse_args()
    pin_threads()
    found: dict[str, Any] = json.loads(args.out.read_text())["tasks"] if args.out.exists() else {}
    for task in TASKS:
        if args.envs and not {task.env, task.name} & set(args.envs):
            continue
        shown, reached = expert(task)
        print(f"{task.name}: the teacher scores {reached:.1f}", file=sys.stderr, flush=True)
        row: dict[str, Any] = {"bar": task.bar, "teacher": reached, "taught_at": task.taught_at, "steps": task.steps}
        row["scratch"] = [one(task, seed, None, 0) for seed in range(args.seeds)]
        print(f"  from scratch: {summary(row['scratch'])[1]}", file=sys.stderr, flush=True)
        row["clone"] = {}
        for count in task.episodes:
            runs = [one(task, seed, shown, count) for seed in range(args.seeds)]
            recorded = sum(episode.steps for episode in shown.episodes[:count])
            row["clone"][str(count)] = {"recorded": recorded, "runs": runs}
            print(f"  {count} episodes: {summary(runs)[1]}", file=sys.stderr, flush=True)
        found[task.name] = row
        args.out.parent.mkdir(exist_ok=True)
        body = {"command": "python benchmarks/clone.py", "episodes": EPISODES, "tasks": found}
        args.out.write_text(json.dumps(body, indent=2) + "\n")
    found = {task.name: found[task.name] for task in TASKS if task.name in found}
    print(table(found))
    return 0 if all(pays(found, env) for env in {task.env for task in TASKS if task.name in found}) else 1


def pays(found: dict[str, Any], env: str) -> bool:
    """True if the best way to clone reaches the bar in fewer steps than PPO from scratch."""
    rows = [found[task.name] for task in TASKS if task.env == env and task.name in found]
    return any(summary(arm["runs"])[0] < summary(row["scratch"])[0] for row in rows for arm in row["clone"].values())


if __name__ == "__main__":
    sys.exit(main())
