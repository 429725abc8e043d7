"""A rule as the reward (one short sentence that ends with a full stop): PPO, RLOO and GRPO at equal tokens.

python benchmarks/lm/rule.py [--seeds 3] [--steps 45] [--only ppo] [--fresh]     results/lm_rule.json
needs `surefoot lm get smollm2`
"""

from __future__ import annotations

import argparse
from typing import Any

import common
import numpy as np
import torch

from surefoot.lm.config import LMConfig
from surefoot.lm.policy.loading import load_backbone
from surefoot.lm.training import LMStep, LMTraining

THINGS = (
    "rain bread trains winter school music friends cats mountains tea books sleep cities gardens money work".split()
)
PROMPTS = [f"Question: Tell me something about {thing}.\nAnswer:" for thing in THINGS]


def rule(prompt: str, response: str) -> float:
    """1 where the rule is kept; else the more, the fewer words come after the first full stop; less than 0 without one."""
    first, stop, rest = response.strip().partition(".")
    size, more = len(first.split()), len(rest.split())
    if size < 4:
        return 0.1 * size - 0.5
    if not stop:
        return -0.2
    return 0.5 * float(size <= 12) + 0.5 * max(0.0, 1.0 - more / 8)


def kept_to(response: str) -> bool:
    text = response.strip()
    return 4 <= len(text.split()) <= 12 and text.endswith(".") and text.count(".") == 1


def run(algorithm: str, seed: int, steps: int, lr: float) -> dict[str, Any]:
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    how: dict[str, Any] = {
        "ppo": {"prompts": 24},
        "rloo": {"prompts": 6, "group": 4},
        "grpo": {"prompts": 6, "group": 4, "kl_in": "loss", "kl": "k3"},
    }[algorithm]
    config = LMConfig(
        algorithm=algorithm,
        steps=steps,
        max_new_tokens=18,
        top=6,
        beta=0.02,
        missing_eos_penalty=1.0,
        seed=seed,
        **how,
    )
    backbone, tokenizer = load_backbone("smollm2", config)
    kept: list[bool] = []

    def reward(prompt: str, response: str) -> float:
        kept.append(kept_to(response))
        return rule(prompt, response)

    rate = f"0:{lr:g},0.5:{lr:g},1:{lr / 10:g}"  # found first, then kept
    ppo = config.ppo(lr=rate, target_kl=0.05, epochs=3, minibatches=2)
    training = LMTraining(backbone, tokenizer, PROMPTS, reward, config, ppo=ppo)

    def row(step: LMStep) -> list[float]:
        made = [float(np.mean(kept)), step.stats["kl"], step.stats["tokens"], step.stats["score"]]
        kept.clear()
        return made

    curve, earlier = common.go_on(f"lm-rule-{algorithm}-{seed}-{steps}-{lr:g}", training, row)
    ids = [training.speech.prompt(talk) for talk in PROMPTS] * 4
    texts = [training.speech.text(r.tokens) for r in training.respond(ids)]
    return {
        "earlier_seconds": earlier,
        "before": curve[0][0],
        "satisfied": float(np.mean([kept_to(t) for t in texts])),
        "tokens": training.tokens,
        "curve": curve,
        "texts": texts[:6],
        "peak_mb": common.peak_mb(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=45)
    parser.add_argument("--lr", type=float, default=3e-3)
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
