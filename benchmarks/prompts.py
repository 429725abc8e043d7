"""Does the policy learn which mutation a prompt needs? Held-out prompts, several seeds, four baselines in the same run.

The measure is what an improved prompt gained, less what its added tokens cost (`reward`), and the gain a token added.
Baselines: a random choice, the single best mutation, one after the other, and the best mutation of each category; the
last two choices are made on the training prompts. Random search tries K random sequences and keeps the best by score:
how many scorer calls it needs to be as good as the policy, which needs none.

Results are kept per seed in results/prompts.json; --fresh starts over.

python benchmarks/prompts.py --data DIR            DIR has prompts.jsonl, a JSON object with "prompt" in each line
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from surefoot.decide.encoders.encoder import HashingEncoder
from surefoot.decide.prompts.classify import CATEGORIES, classify
from surefoot.decide.prompts.improve import Chooser, Improved, at_random, by_policy, improve, one_each, round_robin
from surefoot.decide.prompts.mutations import MUTATIONS
from surefoot.decide.prompts.runs import SETTINGS
from surefoot.decide.prompts.scorers import FeatureScorer
from surefoot.decide.prompts.world import PromptConfig, PromptWorld
from surefoot.train.diagnose.statistics import summarize
from surefoot.train.spec import make_spec
from surefoot.train.training import Training

HERE = Path(__file__).resolve().parent
HELD_OUT = 0.3


def split(prompts: Sequence[str]) -> tuple[list[str], list[str]]:
    """(training, held out), the same for every seed."""
    order = np.random.default_rng(7).permutation(len(prompts))
    apart = int(HELD_OUT * len(prompts))
    return [prompts[i] for i in order[apart:]], [prompts[i] for i in order[:apart]]


def a_world(prompts: Sequence[str], cost: float, n: int = 64, *, in_order: bool = True) -> PromptWorld:
    return PromptWorld(
        prompts, FeatureScorer(), HashingEncoder(256), n, PromptConfig(token_cost=cost), in_order=in_order
    )


def measure(choose: Chooser, prompts: Sequence[str], cost: float) -> dict[str, float]:
    """What a way of choosing makes of every prompt."""
    return told(improve(choose, a_world(prompts, cost)))


def told(found: Sequence[Improved]) -> dict[str, float]:
    gain, tokens = np.array([e.gain for e in found]), np.array([float(e.tokens_added) for e in found])
    return {
        "reward": float(np.mean([e.reward for e in found])),
        "gain": float(gain.mean()),
        "tokens": float(tokens.mean()),
        "gain_per_token": float(gain.sum() / max(tokens.sum(), 1.0)),
    }


def best_of_each(prompts: Sequence[str], cost: float) -> tuple[Chooser, Chooser]:
    """(the best single mutation, the best of each category), by what they earned on these prompts."""
    kinds = np.array([CATEGORIES.index(classify(p).category) for p in prompts])
    rewards = np.array(
        [
            [e.reward for e in improve(one_each([k] * len(CATEGORIES)), a_world(prompts, cost))]
            for k in range(len(MUTATIONS))
        ]
    )
    single = int(rewards.mean(axis=1).argmax())
    by_kind: list[int | None] = []
    for c in range(len(CATEGORIES)):
        mine = rewards[:, kinds == c]
        best = int(mine.mean(axis=1).argmax()) if mine.shape[1] else single
        by_kind.append(best if not mine.shape[1] or mine[best].mean() > 0.0 else None)
    return one_each([single] * len(CATEGORIES)), one_each(by_kind)


def train(prompts: Sequence[str], cost: float, seed: int, steps: int) -> tuple[Training, list[float]]:
    world = a_world(prompts, cost, SETTINGS["envs"], in_order=False)
    spec = make_spec(
        world.name,
        world.action,
        preset_name="sb3",
        settings={**SETTINGS, "seed": seed},
        total_steps=steps,
        eval_every=0,
    )
    training, curve = Training(spec, world=world), list[float]()
    for _ in training:
        recent = training.collector.episodes.recent()[0]
        curve.append(float("nan") if recent is None else round(float(recent), 4))
    return training, curve


def search_calls(prompts: Sequence[str], cost: float, wanted: float, seed: int, most: int = 64) -> dict[str, float]:
    """Random search by score: tries, and scorer calls, until the best of K sequences is as good as `wanted` on the mean."""
    best = np.full(len(prompts), -np.inf)
    calls = 0
    for k in range(1, most + 1):
        found = improve(at_random(1000 * seed + k), a_world(prompts, cost))
        best = np.maximum(best, [e.reward for e in found])
        calls += sum(e.scorer_calls for e in found)
        if best.mean() >= wanted:
            break
    return {"tries": k, "calls_per_prompt": calls / len(prompts), "reached": float(best.mean())}


def run_seed(data: list[str], cost: float, seed: int, steps: int) -> dict[str, Any]:
    training_prompts, held = split(data)
    begin = time.process_time()
    training, curve = train(training_prompts, cost, seed, steps)
    spent = time.process_time() - begin
    single, by_category = best_of_each(training_prompts, cost)
    ways: dict[str, Chooser] = {
        "learned": by_policy(training.policy),
        "random": at_random(seed),
        "best single mutation": single,
        "one after the other": round_robin,
        "best of each category": by_category,
    }
    rows = {name: measure(choose, held, cost) for name, choose in ways.items()}
    search = search_calls(held[:150], cost, measure(ways["learned"], held[:150], cost)["reward"], seed)
    return {"rows": rows, "curve": curve, "cpu_seconds": round(spent, 1), "random_search": search}


def report(results: dict[str, Any]) -> int:
    """Print the table; 1 if a baseline's interval touches the policy's."""
    seeds = results["seeds"]
    names = list(next(iter(seeds.values()))["rows"])
    met = True

    def interval(name: str, what: str) -> Any:
        return summarize([seed["rows"][name][what] for seed in seeds.values()])

    print("| how mutations are chosen | reward (gain less token cost) | gain | tokens added | gain a token |")
    print("|---|---|---|---|---|")
    for name in names:
        reward, per = interval(name, "reward"), interval(name, "gain_per_token")
        gain, tokens = (np.mean([s["rows"][name][w] for s in seeds.values()]) for w in ("gain", "tokens"))
        print(
            f"| {name} | {reward.iqm:.3f} [{reward.low:.3f}, {reward.high:.3f}] | {gain:.3f} | {tokens:.1f} "
            f"| {per.iqm:.4f} [{per.low:.4f}, {per.high:.4f}] |"
        )
        if name != "learned":
            met &= all(interval("learned", w).low > interval(name, w).high for w in ("reward", "gain_per_token"))
    calls = [s["random_search"]["calls_per_prompt"] for s in seeds.values()]
    print(f"\nrandom search needs {np.mean(calls):.1f} scorer calls a prompt to be as good; the policy needs none")
    return 0 if met and len(seeds) >= 5 else 1


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=5, help="settings were tried on seed 0")
    parser.add_argument("--steps", type=int, default=80_000)
    parser.add_argument("--token-cost", type=float, default=0.008)
    parser.add_argument("--out", type=Path, default=HERE / "results/prompts.json")
    parser.add_argument("--fresh", action="store_true")
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    lines = (args.data / "prompts.jsonl").read_text(encoding="utf-8").splitlines()
    data = [text for line in lines if line.strip() and (text := str(json.loads(line)["prompt"])).strip()]
    results: dict[str, Any] = {"seeds": {}}
    if args.out.exists() and not args.fresh:
        results = json.loads(args.out.read_text())
    for seed in range(args.first_seed, args.first_seed + args.seeds):
        if str(seed) not in results["seeds"]:
            results["seeds"][str(seed)] = row = run_seed(data, args.token_cost, seed, args.steps)
            shown = {name: round(r["reward"], 3) for name, r in row["rows"].items()}
            print(f"seed {seed}: {shown}, {row['cpu_seconds']} CPU-s", file=sys.stderr, flush=True)
            about = {"command": "python benchmarks/prompts.py --data DIR", "prompts": len(data), "steps": args.steps}
            args.out.parent.mkdir(exist_ok=True)
            args.out.write_text(json.dumps({**about, "token_cost": args.token_cost, **results}, indent=1) + "\n")
    return report(results)


if __name__ == "__main__":
    sys.exit(main())
