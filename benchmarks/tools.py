"""Choosing tools for queries with reward 1 or 0 for the tool tried: the agent with its defaults against peers, same vectors.

Success over all decisions of a stream, for 10, 77, 150 and 200 tools and six regimes: plain; a tenth of the rewards flipped; 30 %
of the outcomes missing; outcomes 200 decisions late; half of the tools swapping meaning; tools added, removed and renamed. Other
parts: CPU time per decision, queries that no tool is right for, and the learning curve up to 100,000 decisions.

python benchmarks/tools.py --data DIR                         every part
python benchmarks/tools.py --data DIR --parts cells --sizes 77 --regimes plain,drift --arms ours,residual --seeds 5
python benchmarks/tools.py --report
DIR holds banking77 (*.csv with text and category) and clinc150 (data_full.json and domains.json of github.com/clinc/oos-eval).
Without clinc150 there are 10 tools (topics of banking77) and 77. Results are kept per seed: stop it and start it again.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))

from surefoot.decide.encoders.encoder import Likeness, make_encoder, unit_rows
from surefoot.decide.evaluation.offpolicy import student
from surefoot.decide.evaluation.summary import risk_coverage
from surefoot.decide.policy.outcome_model import Scene
from workloads.tool_arms import ARMS, PEERS, Ours, Peer, make, play, vw_missing
from workloads.tool_streams import REGIMES, Moment, Task, load

HERE = Path(__file__).resolve().parent
PARTS = ("cost", "cells", "outside", "curve")
COUNT = 2000
"""Decisions per stream: 10 per tool at 200 tools."""
TRAINED, MET, TESTED = 4000, 200, 1000
"""Outside part: decisions before the test, foreign queries among them if any are met, and queries of the test."""
TOTAL_BAR, DECIDE_BAR = 300.0, 60.0
"""Microseconds of CPU time per decision with learning, and to decide, at 200 tools and 384 numbers."""


def cost(options: int = 200, dim: int = 384, count: int = 3000) -> dict[str, float]:
    """Return microseconds of CPU time per decision of the agent: to decide, and with outcome and learning."""
    rng = np.random.default_rng(0)
    tools = unit_rows(rng.standard_normal((options, dim)))
    right = rng.integers(0, options, 2 * count)
    queries = unit_rows(tools[right] + 1.2 * rng.standard_normal((2 * count, dim)) / math.sqrt(dim))
    task = Task(name="", x=queries, right=right, tools=tools, likeness=Likeness(17.0, 10.0, 0.4), outside=queries[:0])
    learner, every = Ours(task, 0), np.arange(options)
    rows = [
        Moment(x=x, option=every, described=tools, right=int(a), flipped=False, observed=True)
        for x, a in zip(queries, right, strict=True)
    ]
    begin = time.process_time()
    for moment in rows[:count]:
        chosen, record = learner.decide(moment)
        learner.learn(record, float(chosen == moment.right))
    middle = time.process_time()
    for moment in rows[count:]:
        learner.decide(moment)
    end = time.process_time()
    return {"total": 1e6 * (middle - begin) / count, "decide": 1e6 * (end - middle) / count}


def auroc(inside: np.ndarray, outside: np.ndarray) -> float:
    """Return the chance that a query inside has a higher score than one outside."""
    values, place = np.unique(np.concatenate([inside, outside]), return_inverse=True)
    count = np.bincount(place, minlength=len(values))
    rank = (np.cumsum(count) - (count - 1) / 2)[place[: len(inside)]]
    return float((rank.sum() - len(inside) * (len(inside) + 1) / 2) / (len(inside) * len(outside)))


def outside(task: Task, seed: int, met: int) -> dict[str, Any]:
    """Return how well unseen queries inside and outside are separated after learning, `met` foreign queries included."""
    rng = np.random.default_rng([seed, 9])
    order, foreign = rng.permutation(len(task.x)), rng.permutation(len(task.outside))
    every = np.arange(len(task.tools))
    ours, peer = Ours(task, seed), Peer(PEERS["residual"](task.x.shape[1], task.likeness), seed)
    for t in range(TRAINED):
        rows = [(task.x[order[t]], int(task.right[order[t]]))]
        if met and t % (TRAINED // met) == 0:
            rows.append((task.outside[foreign[t * met // TRAINED]], -1))
        for (x, right), learner in product(rows, (ours, peer)):
            moment = Moment(x=x, option=every, described=task.tools, right=right, flipped=False, observed=True)
            chosen, record = learner.decide(moment)
            learner.learn(record, float(chosen == right))
    known, strange = order[TRAINED : TRAINED + TESTED], foreign[MET:]
    tested = (task.x[known], task.outside[strange])
    records = [[ours.agent.choose("", vector=x, greedy=True) for x in rows] for rows in tested]
    sure = [np.array([record.confidence for record in rows]) for rows in records]
    scores = [np.array([record.choice.score for record in rows]) for rows in records]
    theirs = [[float(peer.chooser.choose(_scene(task, x), rng).worth.max()) for x in rows] for rows in tested]
    right = [r.names[r.choice.at] == str(a) for r, a in zip(records[0], task.right[known], strict=True)]
    answers = right + [False] * len(strange)
    return {
        "auroc": {
            "ours": auroc(*scores),
            "residual": auroc(*map(np.array, theirs)),
            "cosine": auroc(*[(rows @ task.tools.T).max(axis=1) for rows in tested]),
        },
        "kept": float(np.mean([record.name is not None for record in records[0]])),
        "refused": float(np.mean([record.name is None for record in records[1]])),
        "success": float(np.mean(right)),
        "calibration_error": calibration_error(sure[0], np.array(right, float)),
        "risk_coverage": risk_coverage(np.concatenate(sure), np.array(answers, float)),
    }


def _scene(task: Task, x: np.ndarray) -> Scene:
    return Scene(x=x, option=np.arange(len(task.tools)), cosine=task.tools @ x)


def calibration_error(sure: np.ndarray, right: np.ndarray, bins: int = 10) -> float:
    """Return the mean distance of expected and observed success over ten bins of equal size."""
    parts = np.array_split(np.argsort(sure), bins)
    return float(np.mean([abs(sure[p].mean() - right[p].mean()) for p in parts]))


def resident_mb() -> float:
    """Return the memory of this process now: its peak would be that of the encoder, which ran before."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def curve(task: Task, seed: int = 0) -> dict[str, Any]:
    """Return success of the last tenth at 100 … 100,000 decisions over repeated passes, and the growth of memory."""
    learner, found = Ours(task, seed), dict[str, Any]()
    every, rng, right, t = np.arange(len(task.tools)), np.random.default_rng(seed), list[bool](), 0
    before = resident_mb()
    while t < 100_000:
        for query in rng.permutation(len(task.x)):
            # Small noise: the same query is never asked twice with the same vector.
            x = unit_rows(task.x[query] + 0.3 * rng.standard_normal(task.x.shape[1]) / math.sqrt(task.x.shape[1]))
            row = Moment(
                x=x, option=every, described=task.tools, right=int(task.right[query]), flipped=False, observed=True
            )
            chosen, record = learner.decide(row)
            right.append(chosen == row.right)
            learner.learn(record, float(right[-1]))
            t += 1
            if t in (100, 1000, 10_000, 100_000):
                grown = round(resident_mb() - before, 1)
                found[str(t)] = {"last_tenth": float(np.mean(right[-t // 10 :])), "grown_mb": grown}
            if t == 100_000:
                break
    return found


def paired(ours: dict[str, float], other: dict[str, float]) -> tuple[float, float, float]:
    """Return the mean difference over the seeds that both have, and its 95 % interval."""
    seeds = sorted(set(ours) & set(other))
    gaps = np.array([ours[s] - other[s] for s in seeds])
    mean = float(gaps.mean())
    if len(gaps) < 2:
        return mean, -math.inf, math.inf
    # `student` is an expansion that is too small below 3 degrees of freedom; these are from a table.
    factor = {1: 12.706, 2: 4.303}.get(len(gaps) - 1) or student(0.975, len(gaps) - 1)
    half = factor * float(gaps.std(ddof=1)) / math.sqrt(len(gaps))
    return mean, mean - half, mean + half


def verdicts(results: dict[str, Any]) -> list[tuple[str, bool]]:
    """Return the sentences that must be true, and whether they are."""
    found = list[tuple[str, bool]]()
    for name, arms in results.get("cells", {}).items():
        for arm in [arm for arm in arms if arm not in ("ours", "nearest")] if "ours" in arms else []:
            mean, low, high = (100 * value for value in paired(arms["ours"], arms[arm]))
            found.append((f"{name}: {mean:+.2f} points against {arm} ({low:+.2f} … {high:+.2f})", high >= 0.0))
    if "cost" in results:
        total, decide = results["cost"]["total"], results["cost"]["decide"]
        found.append((f"{total:.0f} µs per decision with learning (at most {TOTAL_BAR:.0f})", total <= TOTAL_BAR))
        found.append((f"{decide:.0f} µs to decide (at most {DECIDE_BAR:.0f})", decide <= DECIDE_BAR))
    for name, runs in results.get("outside", {}).items():
        means = {
            key: float(np.mean([run["auroc"][key] for run in runs.values()])) for key in ("ours", "residual", "cosine")
        }
        ours, best = means["ours"], max(means["residual"], means["cosine"])
        found.append((f"outside, {name}: AUROC {ours:.3f}, best of cosine and residual {best:.3f}", ours > best))
    return found


def report(results: dict[str, Any]) -> int:
    """Print every sentence; 0 if all are true."""
    for sentence, met in verdicts(results):
        print(f"{'met' if met else 'NOT MET'}: {sentence}")
    return int(not all(met for _, met in verdicts(results)))


def main() -> int:
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the directory that holds banking77 and clinc150")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--sizes", default="", help="of 10, 77, 150, 200; all by default")
    parser.add_argument("--regimes", default=",".join(REGIMES))
    parser.add_argument("--arms", default=",".join(ARMS))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--vw-seeds", type=int, default=3, help="Vowpal Wabbit takes ten times as long as the others")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "tools.json")
    parser.add_argument("--report", action="store_true", help="only print the results")
    args = parser.parse_args()
    results: dict[str, Any] = json.loads(args.out.read_text()) if args.out.exists() else {}
    if args.report:
        return report(results)
    if args.data is None:
        parser.error("--data DIR is needed; it holds banking77 and clinc150")

    def keep(*path: str, value: Any) -> None:
        at = results
        for key in path[:-1]:
            at = at.setdefault(key, {})
        at[path[-1]] = value
        args.out.write_text(json.dumps(results) + "\n")

    parts = args.parts.split(",")
    if "cost" in parts:
        keep("cost", value=cost())
    tasks = load(args.data, make_encoder("minilm", say=print))
    tasks = [task for task in tasks if not args.sizes or task.name in args.sizes.split(",")]
    if "outside" in parts:
        for task, met, seed in product(tasks, (0, MET), range(3)):
            name = f"{task.name} tools, {met or 'no'} foreign queries met"
            if len(task.outside) and str(seed) not in results.get("outside", {}).get(name, {}):
                keep("outside", name, str(seed), value=outside(task, seed, met))
    if "cells" in parts:
        wanted = args.arms.split(",")
        rounds = [(seed, [arm for arm in wanted if arm != "vw"]) for seed in range(args.seeds)]
        # Vowpal Wabbit comes last: a run that is stopped early has the others.
        rounds += [(seed, ["vw"]) for seed in range(args.vw_seeds) if "vw" in wanted and not vw_missing()]
        for (seed, arms), task in product(rounds, tasks):
            for regime, arm in product(args.regimes.split(","), arms):
                name = f"{task.name}/{regime}"
                if str(seed) not in results.get("cells", {}).get(name, {}).get(arm, {}):
                    right = play(make(arm, task, seed), task, regime, seed, COUNT)
                    keep("cells", name, arm, str(seed), value=round(float(right.mean()), 5))
    if "curve" in parts and "curve" not in results:
        keep("curve", value=curve(next(task for task in tasks if task.name == "77")))
    return report(results)


if __name__ == "__main__":
    sys.exit(main())
