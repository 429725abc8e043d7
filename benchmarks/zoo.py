"""RL Zoo's PPO settings: every MLP entry of its hyperparams/ppo.yml, CPU time of a few rollouts beside Stable-Baselines3.

python benchmarks/zoo.py PPO.yml                          what is missing; `benchmarks/peers.py sb3` makes the peer
python benchmarks/zoo.py PPO.yml --only Pendulum-v1 --again
The file is RL Zoo's own (github.com/DLR-RM/rl-baselines3-zoo, never committed). Each side is a process with one thread; entry by
entry they are asked in turn, and the smallest of the runs counts. Ours trains what `surefoot import zoo` writes, as
`surefoot train --config` does. Both run whole rollouts, at least 2,048 steps, after a short training of CartPole that loads what
is loaded once. pybullet's and MiniGrid's envs need `pip install pybullet_envs_gymnasium minigrid` on both sides.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from peers import PEERS

HERE = Path(__file__).resolve().parent
SCRIPT = HERE / "workloads" / "zoo_entry.py"
RESULTS = HERE / "results" / "zoo.json"
LEAST_STEPS = 2_048
BAR = 5.0
"""Wanted ratio of CPU time where the env takes less than half of ours."""


def entries(path: Path) -> list[str]:
    """Return the names of the entries with an MLP policy."""
    content = yaml.load(path.read_text(), yaml.SafeLoader)
    return [name for name, x in content.items() if name != "default" and x["policy"] == "MlpPolicy"]


def read(path: Path, name: str) -> dict[str, Any]:
    """Return an entry as the workload takes it; ids that Gymnasium removed become those of today."""
    from surefoot.compat.sb3.zoo import read_zoo_run
    from surefoot.data.kinds import as_mapping, literal
    from surefoot.train.config import zoo_entry
    from surefoot.train.interop.zoo import read_zoo

    run, raw = read_zoo_run(path, name), zoo_entry(path, name)
    sb3 = {key: raw[key] for key in run.settings}
    for key in ("learning_rate", "clip_range"):
        if isinstance(sb3.get(key), str) and not sb3[key].startswith("lin_"):
            sb3[key] = float(sb3[key])
    if "policy_kwargs" in sb3:
        kwargs = dict(as_mapping(literal(sb3["policy_kwargs"])) or {})
        if "activation_fn" in kwargs:
            kwargs["activation_fn"] = str(kwargs["activation_fn"]).rpartition(".")[2]
        sb3["policy_kwargs"] = kwargs
    settings, unsupported = read_zoo(path, name)
    assert all(sentence.startswith("env_wrapper") for sentence in unsupported), unsupported
    rollout = run.envs * sb3.get("n_steps", 2048)
    return {
        # MuJoCo's old versions need an old MuJoCo.
        "env": re.sub(r"-v[24]$", "-v5", name),
        "envs": run.envs,
        "wrappers": [wrapper for wrapper, _ in run.wrappers],
        "normalize": run.normalize,
        "sb3": sb3,
        "surefoot": {key: x for key, x in settings.items() if key not in ("preset", "total_steps")},
        "steps": rollout * math.ceil(LEAST_STEPS / rollout),
    }


class Side:
    """A process that measures entries."""

    def __init__(self, side: str, wrap: list[str]) -> None:
        python = PEERS["sb3"].python if side == "sb3" else Path(sys.executable)
        threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [*wrap, str(python), str(SCRIPT), side],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **threads},
            text=True,
        )

    def measure(self, entry: dict[str, Any]) -> dict[str, Any]:
        """Return the result, or {"error": what was raised}."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(entry) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def table(results: dict[str, Any]) -> str:
    """Return one row per entry, the largest ratio first, and a sentence about the bar."""
    rows = [
        "| entry | env | µs per step of the env | SB3, CPU-s | ours | ratio | env's share of ours | kernel |",
        "|---|---|---|---|---|---|---|---|",
    ]
    found, failed, below = list[tuple[float, str, str]](), list[str](), list[str]()
    for name, x in results.items():
        if error := next((side["error"] for side in (x["sb3"], x["surefoot"], x["env"]) if "error" in side), None):
            failed.append(f"{name} ({error})")
            continue
        theirs, ours = x["sb3"]["cpu_seconds"], x["surefoot"]["cpu_seconds"]
        step = x["env"]["cpu_seconds"] / x["env"]["steps"]
        share = min(1.0, step * x["surefoot"]["steps"] / ours)
        ratio = theirs / ours
        if ratio < BAR and share < 0.5:
            below.append(f"{name} {ratio:.1f}")
        cells = (
            *(
                f"{name}, {x['surefoot']['steps']:,} steps",
                x["id"],
                f"{step * 1e6:.1f}{'' if x['env']['backend'] == 'gymnasium' else ' (C)'}",
                f"{theirs:.2f}",
                f"{ours:.2f}",
            ),
            *(
                f"**{ratio:.1f} ×**",
                f"{share:.0%}",
                f"{x['surefoot']['kernel']:.0%}",
            ),
        )
        found.append((ratio, name, "| " + " | ".join(cells) + " |"))
    rows += [row for _, _, row in sorted(found, reverse=True)]
    rows.append("")
    rows.append(
        f"{len(found)} entries were run. "
        + (
            f"Below {BAR:.0f} though the env takes less than half of our time: {', '.join(below)}."
            if below
            else f"All entries whose env takes less than half of our time are at {BAR:.0f} or more."
        )
    )
    if failed:
        rows[-1] += " Not run: " + "; ".join(failed) + "."
    return "\n".join(rows)


def main() -> None:
    """Run what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="RL Zoo's hyperparams/ppo.yml")
    parser.add_argument("--only", nargs="*", help="entries")
    parser.add_argument("--again", action="store_true", help="repeat entries that are in the results")
    parser.add_argument("--runs", type=int, default=2, help="runs of each side; the smallest counts")
    parser.add_argument("--results", type=Path, default=RESULTS, help="file of the results")
    parser.add_argument("--wrap", default="", help="command to start each process with, such as 'nice -n 5'")
    args = parser.parse_args()
    sides = {side: Side(side, shlex.split(args.wrap)) for side in ("env", "surefoot", "sb3")}
    for name in args.only or entries(args.file):
        results = json.loads(args.results.read_text()) if args.results.exists() else {}
        if name in results and not args.again:
            continue
        entry = read(args.file, name)
        measured: dict[str, Any] = {"id": entry["env"], "env": sides["env"].measure(entry)}
        for _ in range(args.runs):
            for side in ("surefoot", "sb3"):
                result, before = sides[side].measure(entry), measured.get(side)
                if before is None or result.get("cpu_seconds", math.inf) < before.get("cpu_seconds", math.inf):
                    measured[side] = result
            if any("error" in measured[side] for side in ("surefoot", "sb3")):
                break
        print(name, measured, flush=True)
        results[name] = measured
        args.results.write_text(json.dumps(results, sort_keys=True, indent=1) + "\n")
    print(table(json.loads(args.results.read_text())))


if __name__ == "__main__":
    main()
