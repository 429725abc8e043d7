"""Memory, masks and pictures: what is learned, and how fast, beside sb3-contrib and Stable-Baselines3.

python benchmarks/policies.py learn             curves: hidden velocities (5 seeds, GRU and LSTM), masks, pictures
python benchmarks/policies.py speed             env steps per second of CPU time, interleaved with the peers
python benchmarks/policies.py --peer PYTHON     an interpreter with stable-baselines3 and sb3-contrib
What is not run again is kept in results/policies.json.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from peers import PEERS

HERE = Path(__file__).resolve().parent
WORKLOADS = HERE / "workloads"
RESULTS = HERE / "results" / "policies.json"
sys.path.insert(0, str(WORKLOADS))

ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
BARS = {"memory": 5.0, "masks": 1.0, "pictures": 1.25}
ABOUT = {
    "memory": "CartPole without velocities, LSTM 256 each for actor and critic, 8 envs × 128 steps, 10 epochs of 128",
    "masks": "12 numbers picked in order, at least half of the choices forbidden, 8 envs × 128 steps, 4 epochs of 256",
    "pictures": "Catch, 84×84×4 bytes, Nature CNN, 8 envs × 128 steps, 4 epochs of 256",
}
WHOM = {"memory": "sb3-contrib's RecurrentPPO", "masks": "sb3-contrib's MaskablePPO", "pictures": "SB3's CnnPolicy"}


def speed(peer: str, rounds: int, only: list[str]) -> dict[str, Any]:
    """Ratios of env steps per CPU-second, theirs and ours in turn."""
    found: dict[str, Any] = {}
    for workload in only:
        ratios: list[float] = []
        ours: list[float] = []
        theirs: list[float] = []
        for _ in range(rounds):
            ours.append(_rate(sys.executable, "surefoot_shapes.py", workload))
            theirs.append(_rate(peer, "sb3_shapes.py", workload))
            ratios.append(ours[-1] / theirs[-1])
            print(
                f"{workload}: {ours[-1]:,.0f} against {theirs[-1]:,.0f} steps/CPU-s, {ratios[-1]:.2f} times", flush=True
            )
        found[workload] = {
            "about": ABOUT[workload],
            "peer": WHOM[workload],
            "ours": statistics.median(ours),
            "theirs": statistics.median(theirs),
            "ratio": statistics.median(ratios),
            "ratios": ratios,
            "bar": BARS[workload],
        }
    return found


def _rate(python: str, script: str, workload: str) -> float:
    ended = subprocess.run(
        [python, str(WORKLOADS / script), workload, "1"],
        env={**os.environ, **ONE_THREAD},
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode:
        raise SystemExit(f"{script} {workload} failed:\n{ended.stderr[-2000:]}")
    return json.loads(ended.stdout.splitlines()[-1])["steps_per_cpu_second"]


def learn(seeds: int, only: list[str]) -> dict[str, Any]:
    """Curves of our own, by task and seed."""
    tasks: dict[str, Callable[[int], dict[str, Any]]] = {
        "gru": lambda seed: _no_velocity("gru", seed),
        "lstm": lambda seed: _no_velocity("lstm", seed),
        "masks": _masks,
        "pictures": _pictures,
    }
    found: dict[str, Any] = {}
    for name in only:
        runs: dict[str, Any] = {}
        for seed in range(seeds if name != "pictures" else min(seeds, 3)):
            runs[str(seed)] = tasks[name](seed)
            print(
                f"{name} seed {seed}: {runs[str(seed)]['final']:.3g} after {runs[str(seed)]['steps']:,} steps",
                flush=True,
            )
        found[name] = {"runs": runs, "mean": statistics.mean(run["final"] for run in runs.values())}
    return found


def _no_velocity(memory: str, seed: int) -> dict[str, Any]:
    """The shipped preset, until 20 episodes look solved and 100 others say so; at most 200,000 steps."""
    from surefoot.envs.make import make_world
    from surefoot.train.evaluate import play
    from surefoot.train.spec import make_spec
    from surefoot.train.training import Training

    name = "surefoot/CartPoleNoVel-v0"
    world = make_world(name, 8)
    training = Training(make_spec(name, world.action, settings={"memory": memory, "seed": seed}), world=world)
    curve, final = list[tuple[int, float]](), 0.0
    for _ in _every(training, 10_240):
        curve.append((training.env_steps, play(training.policy, make_world(name, 20), 20, seed=seed + 1_000).mean))
        if curve[-1][1] >= 490 or training.finished:
            final = play(training.policy, make_world(name, 50), 100, seed=seed + 999).mean
            if final >= 475:
                break
    return {"curve": curve, "final": final, "steps": training.env_steps}


def _masks(seed: int) -> dict[str, Any]:
    """Until 100 episodes, played deterministically, earn 0.95 of the best return; a forbidden choice is an error."""
    from odd_worlds import InOrder

    from surefoot.envs.make import make_world
    from surefoot.train.evaluate import play
    from surefoot.train.spec import make_spec
    from surefoot.train.training import Training

    settings = {"seed": seed, "envs": 8, "rollout_steps": 128, "minibatch_size": 256, "epochs": 4, "lr": 1e-3}
    world = make_world(InOrder, 8)
    spec = make_spec(world.name, world.action, preset_name="sb3", settings=settings, total_steps=300_000)
    training, curve = Training(spec, world=world), list[tuple[int, float]]()
    for _ in _every(training, 8_192):
        curve.append((training.env_steps, play(training.policy, make_world(InOrder, 20), 100, seed=seed + 999).mean))
        if curve[-1][1] >= 0.95:
            break
    return {"curve": curve, "final": curve[-1][1], "steps": training.env_steps}


def _pictures(seed: int) -> dict[str, Any]:
    """The Nature CNN on 84×84×4 bytes; chance catches about a quarter (-0.5), all caught is 1."""
    from odd_worlds import Catch

    from surefoot.envs.make import make_world
    from surefoot.train.evaluate import play
    from surefoot.train.spec import make_spec
    from surefoot.train.training import Training

    net = {"shared": True, "hidden": ()}
    settings = {
        "seed": seed,
        "envs": 16,
        "rollout_steps": 33,
        "minibatch_size": 264,
        "epochs": 4,
        "lr": 5e-4,
        "ent_coef": 0.01,
    }
    world = make_world(Catch, 16)
    spec = make_spec(world.name, world.action, preset_name="sb3", settings=settings | net, total_steps=40_000)
    training, curve = Training(spec, world=world), list[tuple[int, float]]()
    for _ in _every(training, 4_224):
        curve.append((training.env_steps, play(training.policy, make_world(Catch, 20), 60, seed=seed + 999).mean))
        if curve[-1][1] >= 0.95:
            break
    return {"curve": curve, "final": curve[-1][1], "steps": training.env_steps}


def _every(training: Any, steps: int) -> Iterator[None]:
    """Train on, and come back each time `steps` more are behind us, and at the end."""
    due = steps
    while not training.finished:
        training.update()
        if training.env_steps >= due or training.finished:
            due += steps
            yield


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", choices=("learn", "speed", "all"), default="all")
    parser.add_argument("--peer", default=str(PEERS["sb3"].python), help="the peers' interpreter")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", nargs="*", help="of speed: memory masks pictures; of learn: gru lstm masks pictures")
    args = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    begin = time.process_time()
    parts = {
        "speed": lambda: speed(args.peer, args.rounds, args.only or list(BARS)),
        "learn": lambda: learn(args.seeds, args.only or ["gru", "lstm", "masks", "pictures"]),
    }
    for part, run in parts.items():
        if args.part not in (part, "all"):
            continue
        found = run()
        kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        kept[part] = {**kept.get(part, {}), **found}
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n")
    print(f"{time.process_time() - begin:.0f} s of CPU time here")


if __name__ == "__main__":
    main()
