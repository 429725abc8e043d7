"""Does `surefoot tune` find settings that beat the defaults, within half an hour?

python benchmarks/tune.py                    search and comparison; what was done before is kept
python benchmarks/tune.py --only Acrobot-v1 --minutes 10
The search starts from PPOConfig's defaults (SB3's), not from the env's preset. Afterwards the settings it names and the
defaults are trained on seeds that neither the search nor its play-off has seen, and judged by 100 episodes each.
Exit code 1 if an interval of the difference reaches 0.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
ENVS = {"Acrobot-v1": 20_000, "Pendulum-v1": 60_000}
"""Env steps that every seed trains for, on both sides. With 60,000 of Acrobot the defaults are at the ceiling themselves;
what came of that is in results/tune.json too, as Acrobot-v1@60000."""
FIRST_SEED = 50_000
EPISODES = 100
RESAMPLES = 10_000


def gap_interval(tuned: Sequence[float], plain: Sequence[float]) -> tuple[float, float, float]:
    """Difference of the IQMs with its 95 % bootstrap interval over seeds, each side drawn by itself."""
    from surefoot.train.diagnose.statistics import iqm

    rng = np.random.default_rng(0)
    mine, theirs = (np.asarray(x, np.float64) for x in (tuned, plain))
    draws = [iqm(rng.choice(mine, len(mine))) - iqm(rng.choice(theirs, len(theirs))) for _ in range(RESAMPLES)]
    low, high = np.percentile(draws, [2.5, 97.5])
    return iqm(mine) - iqm(theirs), float(low), float(high)


def search(env: str, steps: int, minutes: float, trials: int, runs: Path) -> dict[str, Any]:
    """What `surefoot tune` says in the end, and how long it took."""
    from surefoot.__main__ import main

    command = [
        "tune",
        env,
        "--preset",
        "sb3",
        "--steps",
        str(steps),
        "--trials",
        str(trials),
        "--minutes",
        str(minutes),
    ]
    command += ["--runs", str(runs), "--json"]
    begin, said = time.monotonic(), io.StringIO()
    with contextlib.redirect_stdout(said):
        code = main(command)
    if code == 2:
        raise SystemExit(f"surefoot {' '.join(command)} failed")
    found = json.loads(said.getvalue().strip().splitlines()[-1])
    kept = ("trials", "settings", "best", "base", "importance")
    return {name: found[name] for name in kept} | {"minutes": (time.monotonic() - begin) / 60, "steps": steps}


def train(env: str, settings: dict[str, Any], steps: int, seed: int) -> dict[str, float]:
    """One seed, trained and judged."""
    from surefoot.envs.make import make_world
    from surefoot.train.evaluate import EVAL_SEED_OFFSET, play
    from surefoot.train.spec import make_spec
    from surefoot.train.training import Training

    probe = make_world(env)
    probe.close()
    given = {name: value for name, value in settings.items() if name not in ("preset", "total_steps")} | {"seed": seed}
    training = Training(make_spec(env, probe.action, preset_name="sb3", settings=given, total_steps=steps))
    begin = time.process_time()
    for _ in training:
        pass
    world = make_world(env, 25)
    played = play(training.policy, world, EPISODES, seed=seed + EVAL_SEED_OFFSET)
    training.close()
    world.close()
    return {"score": played.mean, "cpu_seconds": time.process_time() - begin}


def compare(tuned: dict[str, Any], plain: dict[str, Any]) -> dict[str, Any]:
    """Both sides over their seeds, and what lies between them."""
    from surefoot.train.diagnose.statistics import summarize

    mine, theirs = ([row["score"] for row in side.values()] for side in (tuned, plain))
    gap, low, high = gap_interval(mine, theirs)

    def told(scores: Sequence[float]) -> dict[str, float]:
        found = summarize(list(scores))
        return {"iqm": found.iqm, "low": found.low, "high": found.high, "seeds": found.count}

    return {"tuned": told(mine), "defaults": told(theirs), "gap": gap, "low": low, "high": high}


def show(env: str, search: dict[str, Any], found: dict[str, Any]) -> None:
    sides = [f"{x['iqm']:.1f} [{x['low']:.1f}, {x['high']:.1f}]" for x in (found["tuned"], found["defaults"])]
    print(
        f"{env:<14}{sides[0]:>26} tuned{sides[1]:>28} defaults   difference {found['gap']:+.1f} "
        f"[{found['low']:+.1f}, {found['high']:+.1f}]   {search['trials']} trials in {search['minutes']:.1f} min"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help=f"one of {', '.join(ENVS)}")
    parser.add_argument("--minutes", type=float, default=25.0, help="of a search, its play-off included")
    parser.add_argument("--trials", type=int, default=150)
    parser.add_argument("--seeds", type=int, default=10, help="fresh ones, of both sides")
    parser.add_argument("--share", type=float, default=1.0, help="of the steps, to see that it works")
    parser.add_argument("--runs", type=Path, default=HERE.parent / "runs" / "bench-tune")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "tune.json")
    args = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    kept: dict[str, Any] = json.loads(args.out.read_text())["envs"] if args.out.exists() else {}
    chosen = [args.only] if args.only else list(ENVS)
    for env in chosen:
        steps = int(ENVS[env] * args.share)
        entry = kept.get(env, {})
        if entry.get("search", {}).get("steps") != steps:
            entry = {"search": search(env, steps, args.minutes, args.trials, args.runs), "tuned": {}, "defaults": {}}
            kept[env] = entry
            write(args.out, kept)
        sides = {"tuned": entry["search"]["settings"], "defaults": {}}
        for seed in range(FIRST_SEED, FIRST_SEED + args.seeds):
            for side, settings in sides.items():
                if str(seed) in entry[side]:
                    continue
                entry[side][str(seed)] = row = train(env, settings, steps, seed)
                print(f"{env}, seed {seed}, {side}: {row['score']:.1f}", file=sys.stderr)
                write(args.out, kept)
        entry["comparison"] = compare(entry["tuned"], entry["defaults"])
        write(args.out, kept)
    for env in chosen:
        show(env, kept[env]["search"], kept[env]["comparison"])
    return 0 if all(kept[env]["comparison"]["low"] > 0 for env in chosen) else 1


def write(out: Path, envs: dict[str, Any]) -> None:
    result = {
        "command": "make bench-tune",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "date": time.strftime("%Y-%m-%d"),
        "envs": envs,
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    fresh = out.with_suffix(".tmp")
    fresh.write_text(json.dumps(result, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    fresh.replace(out)


if __name__ == "__main__":
    sys.exit(main())
