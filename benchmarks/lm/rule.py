"""A rule as the reward (one short sentence that ends with a full stop): PPO, RLOO and GRPO at equal tokens.

python benchmarks/lm/rule.py [--seeds 3] [--steps 40] [--only ppo] [--fresh]     results/lm_rule.json
needs `surefoot lm get smollm2`
"""

from __future__ import annotations

import argparse
from typing import Any

import common
import numpy as np
import torch

from surefoot.lm.config import LMConfig
from surefoot.lm.models import load_backbone
from surefoot.lm.training import LMTraining

THINGS = (
    "rain bread trains winter school music friends cats mountains tea books sleep cities gardens money work".split()
)
PROMPTS = [[{"role": "user", "content": f"Tell me something about {thing}."}] for thing in THINGS]


def rule(prompt: str, response: str) -> float:
    """1 for four to twelve words that end with the only full stop, 0.4 for the length alone, less than 0 for next to nothing."""
    text = response.strip()
    size = len(text.split())
    if size < 4:
        return -0.5
    fits = 1.0 if size <= 12 else max(0.0, 1.0 - (size - 12) / 12)
    return fits * (0.4 + 0.6 * float(text.endswith(".") and text.count(".") == 1))


def kept_to(response: str) -> bool:
    text = response.strip()
    return 4 <= len(text.split()) <= 12 and text.endswith(".") and text.count(".") == 1


def run(algorithm: str, seed: int, steps: int, lr: float) -> dict[str, Any]:
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    how: dict[str, Any] = {
        "ppo": {"prompts": 32},
        "rloo": {"prompts": 8, "group": 4},
        "grpo": {"prompts": 8, "group": 4, "kl_in": "loss", "kl": "k3"},
    }[algorithm]
    config = LMConfig(
        algorithm=algorithm,
        steps=steps,
        max_new_tokens=32,
        top=8,
        beta=0.02,
        missing_eos_penalty=0.5,
        seed=seed,
        **how,
    )
    backbone, tokenizer = load_backbone("smollm2", config)
    training = LMTraining(
        backbone, tokenizer, PROMPTS, rule, config, ppo=config.ppo(lr=lr, target_kl=0.05, minibatches=4)
    )
    curve, share = [], []
    while not training.finished:
        step = training.step()
        share.append(float(np.mean([kept_to(s.response) for s in step.samples])))
        curve.append([step.stats["score"], step.stats["kl"], step.stats["tokens"]])
        print(f"{algorithm} seed {seed} step {step.number}: score {curve[-1][0]:.3f} kl {curve[-1][1]:.1f}", flush=True)
    ids = [training.speech.prompt(talk) for talk in PROMPTS] * 4
    texts = [training.speech.text(r.tokens) for r in training.respond(ids)]
    return {
        "satisfied": float(np.mean([kept_to(t) for t in texts])),
        "tokens": training.tokens,
        "curve": curve,
        "texts": texts[:6],
        "peak_mb": common.peak_mb(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--lr", type=float, default=8e-4)
    parser.add_argument("--only", action="append", choices=["ppo", "rloo", "grpo"])
    parser.add_argument("--fresh", action="store_true")
    args = parser.parse_args()
    kept, rows = common.Kept("lm_rule", fresh=args.fresh), []
    for algorithm in args.only or ("ppo", "rloo", "grpo"):
        for seed in range(args.seeds):
            made = kept.get(
                f"{algorithm} {seed} {args.steps} {args.lr}", lambda a=algorithm, s=seed: run(a, s, args.steps, args.lr)
            )
            rows.append(
                [
                    algorithm,
                    seed,
                    made["satisfied"],
                    made["tokens"],
                    made["cpu_seconds"],
                    "yes" if made["satisfied"] >= 0.9 else "NO",
                ]
            )
    print(common.table(["algorithm", "seed", "satisfied", "tokens", "CPU-s", "met"], rows))


if __name__ == "__main__":
    main()
