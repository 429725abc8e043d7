"""Choosing tools for queries, one pass, reward 1 or 0 for the tool tried: ours, the honest bars and the peers.

Every arm sees the same queries in the same order with the same vectors and the same descriptions. Success is the true one,
also where rewards are flipped or late. Windows of 500 are compared with the nearest description on the same queries.

python benchmarks/tools.py --data DIR                       banking77, its 10 topics and bfcl_multiple found below DIR
python benchmarks/tools.py --data DIR/banking77 --format labels --topics mapping.json --seeds 2 --count 3000
python benchmarks/tools.py --data DIR --scenarios plain,flips,late,drift,tools --arms ours,residual
Results are kept per seed in benchmarks/results/tools.json: stop it and start it again.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))

from surefoot.decide.choosers import Chooser, EpsilonGreedy, Experience, LinTS, LinUCB, Residual, ZeroShot
from surefoot.decide.encoders import Likeness, make_encoder
from surefoot.decide.offpolicy import student
from surefoot.decide.outcomes import Scene
from surefoot.decide.ppo import PPOChooser
from workloads.tool_streams import SCENARIOS, Task, load, moments

HERE = Path(__file__).resolve().parent
WINDOW = 500
LATE = 500
FLIPPED = 0.1
MARKS = (500, 1000, 2000)


def hopeful(task: Task) -> Likeness:
    """The bar's own reading of a cosine, fixed beforehand on other data: sigmoid(10 (cos - ½))."""
    return Likeness(task.likeness.sharpness, 10.0, 0.5)


def arms(task: Task, seed: int) -> dict[str, Callable[[], Chooser]]:
    """Every arm by name; those of the literature have the same prior, and their usual settings."""
    dim, like, bar = task.x.shape[1], task.likeness, hopeful(task)
    made: dict[str, Callable[[], Chooser]] = {
        "nearest": lambda: ZeroShot(dim, like),
        "ours": lambda: PPOChooser(dim, like, options=len(task.tools)),
        "residual": lambda: Residual(dim, bar, ridge=1.0),
        "linucb": lambda: LinUCB(dim, bar, ridge=1.0, alpha=0.2),
        "lints": lambda: LinTS(dim, bar, ridge=1.0, spread=0.1),
        "egreedy": lambda: EpsilonGreedy(dim, bar, ridge=1.0, epsilon=0.05),
        "ours, model only": lambda: PPOChooser(dim, like, options=len(task.tools), config=_no_updates()),
    }
    try:
        from workloads.vw_chooser import VW
    except ImportError:
        return made
    return made | {"vw": lambda: VW(dim, bar, seed=seed)}


def _no_updates() -> Any:
    from surefoot.decide.ppo import ChooserConfig

    return ChooserConfig(fresh=1_000_000_000)


def play(chooser: Chooser, task: Task, scenario: str, seed: int, count: int | None) -> dict[str, Any]:
    """One pass; successes of the arm and of the nearest description, a bit a decision."""
    generator, noise = np.random.default_rng([seed, 1]), np.random.default_rng([seed, 2])
    right, nearest, late = list[bool](), list[bool](), list[Experience]()
    explored, updates, begin = 0.0, 0, time.process_time()
    for moment in moments(task, scenario, seed, count):
        x = task.x[moment.query]
        scene = Scene(x=x, option=moment.option, cosine=task.tools[moment.option] @ x)
        choice = chooser.choose(scene, generator)
        good = int(moment.option[choice.at]) == moment.right
        right.append(good)
        nearest.append(int(moment.option[scene.cosine.argmax()]) == moment.right)
        explored += 1.0 - float(np.nanmax(choice.probabilities, initial=0.0))
        flipped = scenario == "flips" and noise.random() < FLIPPED
        late.append(Experience(scene=scene, choice=choice, reward=float(good != flipped)))
        if scenario != "late" or len(late) > LATE:
            updates += chooser.learn([[late.pop(0)]]) is not None
    return {
        "right": pack(right),
        "nearest": pack(nearest),
        "decisions": len(right),
        "explored": explored / max(1, len(right)),
        "updates": updates,
        "cpu_seconds": time.process_time() - begin,
    }


def pack(bits: list[bool]) -> str:
    return np.packbits(np.array(bits, bool)).tobytes().hex()


def unpack(text: str, count: int) -> np.ndarray:
    return np.unpackbits(np.frombuffer(bytes.fromhex(text), np.uint8))[:count].astype(float)


def windows(run: dict[str, Any]) -> np.ndarray:
    """Success minus that of the nearest description, per whole window of 500."""
    gap = unpack(run["right"], run["decisions"]) - unpack(run["nearest"], run["decisions"])
    whole = len(gap) // WINDOW * WINDOW
    return gap[:whole].reshape(-1, WINDOW).mean(axis=1) if whole else np.array([gap.mean()])


def success(run: dict[str, Any]) -> float:
    return float(unpack(run["right"], run["decisions"]).mean())


def paired(ours: dict[str, Any], other: dict[str, Any]) -> tuple[float, float, float]:
    """Mean difference over the seeds both have, and its 95 % interval."""
    seeds = sorted(set(ours) & set(other))
    gaps = np.array([success(ours[s]) - success(other[s]) for s in seeds])
    mean = float(gaps.mean())
    if len(gaps) < 2:
        return mean, -math.inf, math.inf
    half = student(0.975, len(gaps) - 1) * float(gaps.std(ddof=1)) / math.sqrt(len(gaps))
    return mean, mean - half, mean + half


def report(results: dict[str, Any]) -> int:
    """Print the tables; 0 if every bar is met."""
    failed = 0
    for name, per_arm in results.items():
        print(f"\n## {name}\n")
        print(
            "| arm | seeds | cumulative | after 500 / 1,000 / 2,000 (window before) | last 2,000 | worst window | "
            "windows ≥ -1 point | explored | ours minus it (95 %) |"
        )
        print("|---|---|---|---|---|---|---|---|---|")
        for arm, runs in per_arm.items():
            print(row(arm, runs, per_arm.get("ours", {})))
        failed += sum(not met for _, met in bars(name, per_arm))
        for told, met in bars(name, per_arm):
            print(f"\n{'met' if met else 'NOT MET'}: {told}")
    return int(failed > 0)


def row(arm: str, runs: dict[str, Any], ours: dict[str, Any]) -> str:
    curves = [unpack(run["right"], run["decisions"]) for run in runs.values()]
    marks = [
        np.mean([c[max(0, m - 500) : m].mean() for c in curves]) if min(map(len, curves)) >= m else math.nan
        for m in MARKS
    ]
    gaps = np.concatenate([windows(run) for run in runs.values()])
    mean, low, high = paired(ours, runs) if ours else (math.nan,) * 3
    return (
        f"| {arm} | {len(runs)} | **{np.mean([c.mean() for c in curves]):.4f}** | {' / '.join(f'{m:.3f}' for m in marks)} | "
        f"{np.mean([c[-2000:].mean() for c in curves]):.3f} | {100 * gaps.min():+.1f} | {100 * np.mean(gaps >= -0.01):.1f} % | "
        f"{100 * np.mean([run['explored'] for run in runs.values()]):.1f} % | "
        f"{100 * mean:+.2f} ({100 * low:+.2f} … {100 * high:+.2f}) |"
    )


def bars(name: str, per_arm: dict[str, Any]) -> list[tuple[str, bool]]:
    """The sentences that must be true of this task and scenario."""
    if "ours" not in per_arm:
        return []
    ours, told = per_arm["ours"], list[tuple[str, bool]]()
    if name.endswith("/plain"):
        gaps = np.concatenate([windows(run) for run in ours.values()])
        share = float(np.mean(gaps >= -0.01))
        told.append(
            (f"{100 * share:.1f} % of windows at most 1 point below the nearest description (bar 99 %)", share >= 0.99)
        )
    if "residual" in per_arm:
        mean, _, _ = paired(ours, per_arm["residual"])
        told.append((f"{100 * mean:+.2f} points against the residual learner (bar -1)", mean >= -0.01))
    for peer in ("vw", "linucb", "lints"):
        if peer in per_arm:
            mean, low, _ = paired(ours, per_arm[peer])
            told.append((f"{100 * mean:+.2f} points against {peer} (low {100 * low:+.2f}; bar above 0)", mean > 0))
    if name == "topics/plain":
        total = float(np.mean([success(run) for run in ours.values()]))
        told.append((f"{total:.4f} cumulative on 10 broad tools (bar 0.92)", total >= 0.92))
    return told


def tasks(args: argparse.Namespace) -> list[Callable[[], Task]]:
    """What to run on, from --data: one set, or the three known ones below it."""
    encoder = make_encoder(args.encoder, say=print)
    root: Path = args.data
    if any(root.glob("*.csv")) or (root / "queries.jsonl").exists():
        return [lambda: load(root, args.format, encoder, args.topics)]
    topics = HERE / "workloads" / "banking_topics.json"
    known = {
        "topics": lambda: load(root / "banking77", "labels", encoder, topics, "topics"),
        "banking77": lambda: load(root / "banking77", "labels", encoder),
        "bfcl_multiple": lambda: load(root / "bfcl_multiple", "candidates", encoder),
    }
    wanted = args.tasks.split(",") if args.tasks else list(known)
    return [known[name] for name in wanted]


def main() -> int:
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a data set's directory, or the one above several")
    parser.add_argument("--format", choices=("auto", "labels", "candidates"), default="auto")
    parser.add_argument("--topics", type=Path, help="JSON that groups labels into broader tools")
    parser.add_argument("--tasks", default="", help="of the known ones, comma-separated")
    parser.add_argument("--arms", default="nearest,ours,residual,linucb,lints,egreedy,vw")
    parser.add_argument("--scenarios", default="plain", help=f"comma-separated of {', '.join(SCENARIOS)}")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--count", type=int, help="decisions, at most")
    parser.add_argument("--encoder", default="minilm", choices=("minilm", "static", "hashing"))
    parser.add_argument("--out", type=Path, default=HERE / "results" / "tools.json")
    parser.add_argument("--only-report", action="store_true")
    args = parser.parse_args()
    results: dict[str, Any] = json.loads(args.out.read_text()) if args.out.exists() else {}
    if not args.only_report:
        for make in tasks(args):
            task = make()
            for scenario in args.scenarios.split(","):
                run_all(task, scenario, args, results)
    return report(results)


def run_all(task: Task, scenario: str, args: argparse.Namespace, results: dict[str, Any]) -> None:
    """Every arm and seed that is not there yet; written down after each."""
    if scenario == "tools" and task.candidates is not None:
        return  # its tools come and go by themselves
    suffix = "" if args.encoder == "minilm" else f" ({args.encoder})"
    done = results.setdefault(f"{task.name}{suffix}/{scenario}" + (f" [{args.count}]" if args.count else ""), {})
    for seed in range(args.seeds):
        there = arms(task, seed)
        for arm in args.arms.split(","):
            if arm not in there or str(seed) in done.get(arm, {}):
                continue
            run = play(there[arm](), task, scenario, seed, args.count)
            done.setdefault(arm, {})[str(seed)] = run
            args.out.parent.mkdir(exist_ok=True)
            args.out.write_text(json.dumps(results) + "\n")
            print(
                f"{task.name}/{scenario} seed {seed} {arm}: {success(run):.4f}, worst window {100 * windows(run).min():+.1f}, "
                f"{run['cpu_seconds']:.0f} CPU-s",
                flush=True,
            )


if __name__ == "__main__":
    sys.exit(main())
