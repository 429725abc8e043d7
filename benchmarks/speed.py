"""W1 to W5 against Stable-Baselines3, CleanRL, PureJaxRL, rl_games and RLtools, interleaved in one run, one thread on one core.

python benchmarks/speed.py                            everything whose interpreter is there
python benchmarks/speed.py --purejaxrl DIR            PureJaxRL too, from a checkout of it
python benchmarks/speed.py --cleanrl DIR              CleanRL too, likewise
python benchmarks/speed.py --rltools-source DIR       W5: RLtools' own benchmark, compiled from a checkout of it
python benchmarks/speed.py --only W1,W4 --rounds 3    some of it; what is not run again is kept in the results
Rates are env steps per second of CPU time, training only; W4 is the CPU time of the whole process, W5 without imports.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peers import PEERS
from surefoot.native import instruction_set

HERE = Path(__file__).resolve().parent
WORKLOADS = HERE / "workloads"
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
}
ABOUT = {
    "W1": "CartPole-v1, 64×64 tanh, 8 envs × 128 steps, 4 epochs × 4 minibatches of 256",
    "W1-pendulum": "Pendulum-v1, 64×64 tanh, 8 envs × 128 steps, 4 epochs × 4 minibatches of 256, environments in C and C++",
    "W2-pendulum": "Pendulum-v1, Gymnasium's, 1 env × 2048 steps, 10 epochs, minibatches of 64",
    "W2-halfcheetah": "HalfCheetah-v5, our world on libmujoco and Gymnasium's, 1 env × 2048 steps, 10 epochs, minibatches of 64",
    "W2-zoo-pendulum": "Pendulum-v1, RL Zoo's settings: gSDE, 4 envs × 1024 steps, 10 epochs, minibatches of 64; our own world",
    "W3": "CartPole-v1, 2048 envs × 32 steps, 4 epochs × 4 minibatches of 16,384",
    "W4": "CartPole-v1 until the last 100 episodes average 475, everyone's own settings, whole process",
    "W5": "RLtools' Pendulum benchmark: 64×64 ReLU, 4 envs × 1024 steps, 2 epochs, minibatches of 256, 307,200 steps, "
    "then 1,000 evaluation episodes",
}
SECONDS = {"W4": "process_cpu_seconds", "W5": "cpu_seconds"}
"""Workloads whose cost is that of a whole run, and where its rows have it. Their rounds are seeds."""
SEEDS = {"W4": 5, "W5": 10}
OWN, SYNC, GYM = "surefoot, own world", "surefoot, SyncVectorEnv", "surefoot, Gymnasium's env"
TORCH = "surefoot, own world, by torch"
SB3, JAX, RLG, CLEAN, RLTOOLS = "stable-baselines3", "purejaxrl", "rl_games", "cleanrl", "rltools"


@dataclass(frozen=True)
class Bar:
    """What is promised of a pair: at least `times` the rate or, of W4 and W5, at most 1/`times` of the CPU-seconds."""

    workload: str
    ours: str
    peer: str
    times: float


BARS = (
    Bar("W1", OWN, SB3, 38),
    Bar("W1", OWN, JAX, 1.5),
    Bar("W1", OWN, CLEAN, 1),
    Bar("W1-pendulum", OWN, RLTOOLS, 1),
    Bar("W1", SYNC, SB3, 7),
    Bar("W1", TORCH, SB3, 1.8),
    Bar("W2-pendulum", GYM, SB3, 20),
    Bar("W2-halfcheetah", OWN, SB3, 24),
    Bar("W2-halfcheetah", GYM, SB3, 10),
    Bar("W2-zoo-pendulum", OWN, SB3, 12),
    Bar("W3", OWN, JAX, 2),
    Bar("W3", OWN, RLG, 3),
    Bar("W4", OWN, SB3, 6),
    Bar("W4", OWN, JAX, 3),
    Bar("W5", OWN, RLTOOLS, 2),
)

SEED = object()
"""Stands for the number of the round on a command line: the seed of W4 and W5."""
Command = Callable[[int], list[str]]
"""The command line of a side for a round."""


def sides(args: argparse.Namespace) -> dict[str, dict[str, Command]]:
    """{workload: {side: command}} of what can be run here."""
    has = {
        name: Path(given).exists()
        for name, given in ((SB3, args.peer), (JAX, args.jax), (RLG, args.rlgames), (RLTOOLS, args.rltools))
    }
    has[JAX] = has[JAX] and args.purejaxrl is not None
    has[CLEAN] = has[SB3] and args.cleanrl is not None

    def script(python: str, name: str, *words: object) -> Command:
        return lambda number: [python, str(WORKLOADS / name), *(str(number if w is SEED else w) for w in words)]

    def ours(workload: str, whose: str) -> Command:
        return script(sys.executable, "surefoot_steps.py", workload, whose, args.seconds, args.path)

    def jax(*words: object) -> Command:
        return script(args.jax, "purejaxrl_ppo.py", args.purejaxrl, *words)

    def sb3(workload: str) -> Command:
        return script(args.peer, "sb3_steps.py", workload, args.seconds)

    found: dict[str, dict[str, Command]] = {
        "W1": {
            OWN: ours("W1", "own"),
            SYNC: ours("W1", "sync"),
            TORCH: script(sys.executable, "surefoot_steps.py", "W1", "own", args.seconds, "torch"),
            SB3: sb3("W1"),
            JAX: jax("steps", "W1", args.seconds),
            CLEAN: script(args.peer, "cleanrl_steps.py", args.cleanrl, args.seconds),
        },
        "W1-pendulum": {
            OWN: ours("W1-pendulum", "own"),
            RLTOOLS: script(args.rltools, "rltools_steps.py", "W1-pendulum", args.seconds),
        },
        "W2-pendulum": {GYM: ours("W2-pendulum", "gymnasium"), SB3: sb3("W2-pendulum")},
        "W2-halfcheetah": {
            OWN: ours("W2-halfcheetah", "own"),
            GYM: ours("W2-halfcheetah", "gymnasium"),
            SB3: sb3("W2-halfcheetah"),
        },
        "W2-zoo-pendulum": {OWN: ours("W2-zoo-pendulum", "own"), SB3: sb3("W2-zoo-pendulum")},
        "W3": {
            OWN: ours("W3", "own"),
            JAX: jax("steps", "W3", args.seconds),
            RLG: script(args.rlgames, "rlgames_steps.py"),
        },
        "W4": {
            OWN: script(sys.executable, "surefoot_solve.py", SEED, args.path),
            SB3: script(args.peer, "sb3_solve.py", SEED),
            JAX: jax("solve", SEED),
        },
    }
    if args.rltools_source is not None:
        found["W5"] = {
            OWN: script(sys.executable, "surefoot_pendulum.py", SEED),
            RLTOOLS: script(sys.executable, "rltools_pendulum.py", args.rltools_source, SEED),
        }
    wanted = args.only.split(",") if args.only else list(ABOUT)
    return {
        workload: {side: command for side, command in each.items() if workload == "W5" or has.get(side, True)}
        for workload, each in found.items()
        if any(workload == word or workload.startswith(word + "-") for word in wanted)
    }


def run(command: list[str], core: int | None) -> dict[str, Any]:
    """A workload's numbers, with `process_cpu_seconds` of the child from its start to its end beside them."""
    with (
        tempfile.TemporaryDirectory() as scratch,
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as err,
    ):
        pin = None if core is None else (lambda: os.sched_setaffinity(0, {core}))
        child = subprocess.Popen(
            command, stdout=out, stderr=err, cwd=scratch, env=os.environ | ONE_THREAD, preexec_fn=pin
        )
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if child.returncode != 0:
            raise SystemExit(f"{' '.join(command)} failed:\n{err.read()[-2000:]}")
        told = json.loads(out.read().strip().splitlines()[-1])
    whole = used.ru_utime + used.ru_stime - told.get("not_counted_cpu_seconds", 0.0)
    return {**told, "process_cpu_seconds": whole}


def cost(workload: str, row: dict[str, Any]) -> float:
    """CPU-seconds a step, or of W4 and W5 those of a run: less is better."""
    return row[SECONDS[workload]] if workload in SECONDS else 1.0 / row["steps_per_cpu_second"]


def median(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of every number its median over the runs; of words the last."""
    told: dict[str, Any] = {}
    for key, last in runs[-1].items():
        values = [row[key] for row in runs if row.get(key) is not None]
        if isinstance(last, bool):
            told[key] = all(values)
        elif isinstance(last, int | float):
            told[key] = statistics.median(values)
        else:
            told[key] = last
    return told


def ratios(workloads: dict[str, Any]) -> list[dict[str, Any]]:
    """For every bar whose two sides were measured: how many times cheaper we are, by medians and round by round.

    A bar is only met by learning as much: by solving the task, by a mean return that is not lower.
    """
    found: list[dict[str, Any]] = []
    for bar in BARS:
        each = workloads.get(bar.workload, {}).get("sides", {})
        if bar.ours not in each or bar.peer not in each:
            continue
        ours, peer = each[bar.ours], each[bar.peer]
        pairs = zip(ours["runs"], peer["runs"], strict=False)
        by_round = [cost(bar.workload, b) / cost(bar.workload, a) for a, b in pairs]
        times = cost(bar.workload, peer["median"]) / cost(bar.workload, ours["median"])
        learned = ours["median"].get("solved", True)
        if "return" in ours["median"]:
            learned = mean_return(ours) >= mean_return(peer)
        found.append(
            {
                "workload": bar.workload,
                "ours": bar.ours,
                "peer": bar.peer,
                "times": times,
                "by_round": by_round,
                "bar": bar.times,
                "met": times >= bar.times and learned,
            }
        )
    return found


def mean_return(side: dict[str, Any]) -> float:
    """Mean over the seeds of the return at the end."""
    return statistics.fmean(row["return"] for row in side["runs"])


def help_cpu_seconds() -> float:
    """User plus system time of `surefoot --help`, the children's clock before and after."""
    before = os.times()
    subprocess.run([sys.executable, "-m", "surefoot", "--help"], stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    return (after.children_user - before.children_user) + (after.children_system - before.children_system)


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """{workload: {about, rounds, load, sides: {side: {runs, median}}}}; the sides take turns in every round."""
    chosen, core = sides(args), None
    if hasattr(os, "sched_setaffinity"):
        core = max(os.sched_getaffinity(0))
    rows: dict[str, dict[str, list[dict[str, Any]]]] = {w: {s: [] for s in each} for w, each in chosen.items()}
    loads: dict[str, list[float]] = {workload: [] for workload in chosen}
    rounds = {workload: args.seeds or SEEDS[workload] if workload in SEEDS else args.rounds for workload in chosen}
    for number in range(1, max(rounds.values()) + 1):
        for workload, each in chosen.items():
            if number > rounds[workload]:
                continue
            for side, command in each.items():
                loads[workload].append(os.getloadavg()[0])
                row = run(command(number), core)
                rows[workload][side].append(row)
                print(
                    f"round {number} of {rounds[workload]}: {workload} {side}: {in_words(workload, row)}",
                    file=sys.stderr,
                )
    return {
        workload: {
            "about": ABOUT[workload],
            "rounds": rounds[workload],
            "load": [min(loads[workload]), max(loads[workload])],
            "sides": {side: {"median": median(runs), "runs": runs} for side, runs in each.items()},
        }
        for workload, each in rows.items()
    }


def in_words(workload: str, row: dict[str, Any]) -> str:
    if workload == "W4":
        where = f"at {row['steps']:,.0f} steps" if row["solved"] else f"not solved in {row['steps']:,.0f} steps"
        return f"{row['process_cpu_seconds']:.1f} CPU-s, {where}"
    path = f", {row['path']} path" if "path" in row else ""
    if workload == "W5":
        return f"{row['cpu_seconds']:.2f} CPU-s, return {row['return']:.1f}{path}"
    return f"{row['steps_per_cpu_second']:,.0f} steps/CPU-s{path}"


def show(result: dict[str, Any]) -> None:
    for workload, each in result["workloads"].items():
        print(f"\n{workload}: {each['about']}")
        for side, told in each["sides"].items():
            row = told["median"]
            start = f"first step {row['first_step_cpu_seconds']:.2f} CPU-s, " if "first_step_cpu_seconds" in row else ""
            compiling = f"compiling {row['compile_cpu_seconds']:.1f}, " if row.get("compile_cpu_seconds") else ""
            print(f"  {side:<28}{in_words(workload, row):<44} {start}{compiling}{row['peak_mb']:.0f} MB")
    print()
    for row in result["ratios"]:
        spread = f"rounds {min(row['by_round']):.2f}–{max(row['by_round']):.2f}" if row["by_round"] else ""
        told = "met" if row["met"] else "NOT met"
        print(
            f"{row['workload']:<15}{row['ours']:<28}{row['times']:>7.2f} × {row['peer']:<18} "
            f"{spread:<20} bar {row['bar']:g}: {told}"
        )
    print(f"surefoot --help: {result['help_cpu_seconds']:.2f} CPU-s")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", default=str(PEERS["sb3"].python), help="an interpreter with stable_baselines3")
    parser.add_argument("--jax", default=str(PEERS["jax"].python), help="one with jax, flax, optax, distrax, gymnax")
    parser.add_argument("--rlgames", default=str(PEERS["rlgames"].python), help="one with rl_games")
    parser.add_argument("--rltools", default=str(PEERS["rltools"].python), help="one with rltools and mkl")
    parser.add_argument("--cleanrl", type=Path, help="a checkout of CleanRL; without it its row is left out")
    parser.add_argument("--rltools-source", type=Path, help="a checkout of RLtools; without it W5 is left out")
    parser.add_argument("--purejaxrl", type=Path, help="a checkout of PureJaxRL; without it its rows are left out")
    parser.add_argument("--only", help=f"some of {', '.join(ABOUT)}; W1 and W2 mean all of theirs")
    parser.add_argument("--rounds", type=int, default=5, help="of W1 to W3")
    parser.add_argument("--seeds", type=int, help="of W4 and W5 (default 5 and 10)")
    parser.add_argument("--seconds", type=float, default=2.0, help="least CPU-seconds measured a round and side")
    parser.add_argument("--path", default="auto", help="which of our paths: auto, native or torch")
    parser.add_argument("--out", type=Path, default=HERE / "results/speed.json")
    args = parser.parse_args()
    args.purejaxrl = args.purejaxrl and args.purejaxrl.resolve()
    args.cleanrl = args.cleanrl and args.cleanrl.resolve()
    args.rltools_source = args.rltools_source and args.rltools_source.resolve()
    unknown = [w for w in (args.only or "W1").split(",") if not any(name.startswith(w) for name in ABOUT)]
    if unknown:
        parser.error(f"there is no workload {unknown[0]!r}; there are {', '.join(ABOUT)}")
    for name, given in (
        ("sb3", args.peer),
        ("jax", args.jax),
        ("rlgames", args.rlgames),
        ("rltools", args.rltools),
    ):
        if not Path(given).exists():
            print(f"{name} is left out: no {PEERS[name].folder}; `make peers` installs it", file=sys.stderr)
    if args.purejaxrl is None:
        print("purejaxrl is left out: --purejaxrl DIR names a checkout of it", file=sys.stderr)
    return args


def main() -> None:
    args = arguments()
    before = json.loads(args.out.read_text()) if args.out.exists() else {"workloads": {}}
    now = {
        "machine": f"{platform.machine()} with {instruction_set()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "date": time.strftime("%Y-%m-%d"),
    }
    measured = {workload: {**each, **now} for workload, each in measure(args).items()}
    found = {**before["workloads"], **measured}
    workloads = {name: found[name] for name in ABOUT if name in found}
    result = {
        "command": "make bench-speed",
        "workloads": workloads,
        "ratios": ratios(workloads),
        "help_cpu_seconds": (args.only and before.get("help_cpu_seconds"))
        or statistics.median(help_cpu_seconds() for _ in range(5)),
    }
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    show(result)


if __name__ == "__main__":
    main()
