"""Speed of the torch path against Stable-Baselines3: W1, start-up and memory, in one interleaved run.

python benchmarks/speed.py                       both sides, five rounds
python benchmarks/speed.py --peer PYTHON         an interpreter that has stable_baselines3 (default .venv-peers)
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent


def run(command: list[str]) -> dict[str, Any]:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def help_cpu_seconds() -> float:
    """User plus system time of `surefoot --help`, the children's clock before and after."""
    before = os.times()
    subprocess.run([sys.executable, "-m", "surefoot", "--help"], stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    return (after.children_user - before.children_user) + (after.children_system - before.children_system)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--peer", default=str(ROOT / ".venv-peers/bin/python"), help="an interpreter with stable_baselines3"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--updates", type=int, default=60)
    parser.add_argument("--out", type=Path, default=HERE / "results/speed.json")
    args = parser.parse_args()
    updates = str(args.updates)
    sides = {
        "surefoot, own CartPole": [sys.executable, str(HERE / "workloads/surefoot_w1.py"), "own", updates],
        "surefoot, Gymnasium's CartPole": [
            sys.executable,
            str(HERE / "workloads/surefoot_w1.py"),
            "gymnasium",
            updates,
        ],
    }
    if Path(args.peer).exists():
        sides["stable-baselines3"] = [args.peer, str(HERE / "workloads/sb3_w1.py"), updates]
    else:
        print(f"no peer at {args.peer}: `make peers` installs Stable-Baselines3 beside the project", file=sys.stderr)
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in sides}
    for number in range(args.rounds):
        for name, command in sides.items():
            rows[name].append(run(command))
            print(
                f"round {number + 1}: {name}: {rows[name][-1]['steps_per_cpu_second']:,.0f} steps/CPU-s",
                file=sys.stderr,
            )
    table = {name: {key: statistics.median(row[key] for row in each) for key in each[0]} for name, each in rows.items()}
    result = {
        "workload": "W1: CartPole-v1, 64x64 tanh, 8 envs x 128 steps, 4 epochs x 4 minibatches of 256, 1 thread",
        "command": "make bench-speed",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "date": time.strftime("%Y-%m-%d"),
        "rounds": args.rounds,
        "median": table,
        "help_cpu_seconds": statistics.median(help_cpu_seconds() for _ in range(5)),
    }
    peer = table.get("stable-baselines3")
    if peer:
        result["ratio_of_medians"] = {
            name: row["steps_per_cpu_second"] / peer["steps_per_cpu_second"] for name, row in table.items()
        }
    args.out.parent.mkdir(exist_ok=True)
    args.out.write_text(json.dumps(result, indent=2) + "\n")
    print(f"{'side':<32}{'steps/CPU-s':>12}{'x SB3':>8}{'first step CPU-s':>18}{'peak MB':>9}")
    for name, row in table.items():
        ratio = f"{row['steps_per_cpu_second'] / peer['steps_per_cpu_second']:.2f}" if peer else "–"
        print(
            f"{name:<32}{row['steps_per_cpu_second']:>12,.0f}{ratio:>8}"
            f"{row['first_step_cpu_seconds']:>18.2f}{row['peak_mb']:>9.0f}"
        )
    print(f"surefoot --help: {result['help_cpu_seconds']:.2f} CPU-s")


if __name__ == "__main__":
    main()
