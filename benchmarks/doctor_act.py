"""Does `--doctor act` rescue runs that a setting can rescue? One wrong setting per run, with and without it.

A run is harmful if the wrong setting loses more than a fifth of what the right settings gain over chance, and rescued if `act`
wins back at least half of that loss. Scores are means of 30 deterministic episodes after the run's last update.

python benchmarks/doctor_act.py                  every setting, env and seed that is not in results/doctor_act.json
python benchmarks/doctor_act.py --report         only print the results
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import torch

from surefoot.envs.make import make_world
from surefoot.errors import Diverged
from surefoot.telemetry.doctor.doctor import LiveDoctor
from surefoot.train.diagnose.auto_recover import RETAINED_CHECKPOINTS, RecoveringRun
from surefoot.train.evaluate import play
from surefoot.train.run import create_run
from surefoot.train.rundir.rundir import new_run_dir
from surefoot.train.spec import make_spec
from surefoot.train.training import Training

RESULTS = Path(__file__).resolve().parent / "results" / "doctor_act.json"
STEPS = {"CartPole-v1": 100_000, "Acrobot-v1": 100_000, "Pendulum-v1": 150_000, "InvertedPendulum-v5": 60_000}
WRONG: dict[str, dict[str, Any]] = {
    "lr-high": {"lr": 0.1},
    "lr-low": {"lr": 1e-6},
    "gamma-low": {"gamma": 0.3},
    "clip-wide": {"clip": 20.0, "lr": 0.02},
    "clip-narrow": {"clip": 0.0005},
    "entropy-high": {"ent_coef": 2.0},
    "value-weight-high": {"vf_coef": 1000.0},
    "gradient-tiny": {"max_grad_norm": 1e-6},
    "epochs-many": {"epochs": 150, "lr": 0.01},
    "kl-penalty-high": {"kl_coef": 1000.0},
}
SEEDS = (0, 1, 2)
EPISODES = 30


def train(env: str, seed: int, settings: dict[str, Any], *, act: bool) -> dict[str, Any]:
    """Return the score of a run and what was tried."""
    with tempfile.TemporaryDirectory() as folder:
        spec = make_spec(env, make_world(env).action, total_steps=STEPS[env], settings={**settings, "seed": seed})
        if act:  # as `surefoot train --doctor act` does
            spec = replace(spec, keep_checkpoints=RETAINED_CHECKPOINTS)
        run = create_run(new_run_dir(env, seed, root=Path(folder)), spec, doctor=LiveDoctor() if act else None)
        recovering = RecoveringRun(run, act=act)
        try:
            for _ in recovering.moments():
                pass
            world = recovering.run.training.make(EPISODES)
            score = play(recovering.run.training.policy, world, EPISODES, seed=1_000_000 + seed).mean
            recovering.run.close("finished")
        except Diverged:
            score = None
        return {"score": score, "tried": [str(recovery) for recovery in recovering.recoveries]}


def chance(env: str) -> float:
    """Return the score of the policy before its first update."""
    training = Training(make_spec(env, make_world(env).action, total_steps=STEPS[env]))
    return play(training.policy, training.make(EPISODES), EPISODES, seed=1, deterministic=False).mean


def judge(results: dict[str, Any]) -> list[tuple[str, bool, bool]]:
    """Return (run, whether the setting did harm, whether the run was rescued)."""
    rows: list[tuple[str, bool, bool]] = []
    for key, run in results["runs"].items():
        name, env, seed = key.split("/")
        if name == "right":
            continue
        low, right = results["chance"][env], results["runs"][f"right/{env}/{seed}"]["plain"]["score"]
        plain, act = (low if run[way]["score"] is None else run[way]["score"] for way in ("plain", "act"))
        harm = right - plain > 0.2 * (right - low)
        rows.append((key, harm, harm and act - plain >= 0.5 * (right - plain)))
    return rows


def report(results: dict[str, Any]) -> int:
    """Print every run and the share of rescued ones; 0 if it is at least a half."""
    rows = judge(results)
    for key, harm, rescued in rows:
        plain, act = (results["runs"][key][way] for way in ("plain", "act"))
        word = ("rescued" if rescued else "lost") if harm else "no harm"
        print(f"{key:45} {word:8} {plain['score']} -> {act['score']}  {'; '.join(act['tried'])}")
    harmed = [rescued for _, harm, rescued in rows if harm]
    print(f"rescued {sum(harmed)} of {len(harmed)} harmful runs (at least a half is wanted)")
    return int(2 * sum(harmed) < len(harmed))


def main() -> int:
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--seeds", type=int, default=len(SEEDS))
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    results: dict[str, Any] = json.loads(args.out.read_text()) if args.out.exists() else {"chance": {}, "runs": {}}
    if args.report:
        return report(results)
    for seed, env, name in product(SEEDS[: args.seeds], STEPS, ("right", *WRONG)):
        key = f"{name}/{env.replace('/', '.')}/{seed}"
        results["chance"].setdefault(env, None)
        if results["chance"][env] is None:
            results["chance"][env] = chance(env)
        if key not in results["runs"]:
            settings = WRONG.get(name, {})
            ways = {"plain": False} if name == "right" else {"plain": False, "act": True}
            results["runs"][key] = {way: train(env, seed, settings, act=act) for way, act in ways.items()}
            args.out.write_text(json.dumps(results, indent=1) + "\n")
            print(key, {way: run["score"] for way, run in results["runs"][key].items()}, flush=True)
    return report(results)


if __name__ == "__main__":
    sys.exit(main())
