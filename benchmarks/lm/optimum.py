"""The analytic optimum: reward 1 for every token of a set, β a nat; share and objective against the closed form.

python benchmarks/lm/optimum.py [--seeds 3] [--steps N] [--fresh]     results/lm_optimum.json
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import common
import numpy as np
import torch

BETA, SIZE, VOCABULARY, PAID = 0.25, 12, 1000, 110
STEPS = {"k1": 80, "exact": 120}


class Numbers:
    """A tokenizer whose text is numbers: the benchmark needs no words."""

    eos_token_id, pad_token_id, chat_template = 0, 0, None

    def __call__(self, text: str, **_: Any) -> dict[str, list[int]]:
        return {"input_ids": [int(word) for word in text.split()]}

    def decode(self, ids: list[int], **_: Any) -> str:
        return " ".join(str(i) for i in ids)


def run(kl: str, seed: int, steps: int) -> dict[str, Any]:
    from transformers import GPT2Config, GPT2LMHeadModel

    from surefoot.lm.config import LMConfig
    from surefoot.lm.policy.backbone import Backbone
    from surefoot.lm.policy.vocabulary_head import score
    from surefoot.lm.sampling.layout import Sequences, response_states
    from surefoot.lm.training import LMTraining

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=VOCABULARY, n_embd=64, n_layer=2, n_head=2, n_positions=64, bos_token_id=0, eos_token_id=0
        )
    )
    paid = set(range(10, 10 + PAID))
    config = LMConfig(
        max_new_tokens=SIZE,
        min_new_tokens=SIZE - 1,
        prompts=64,
        rows=64,
        steps=steps,
        kl=kl,
        beta=BETA,
        train="full",
        seed=seed,
    )
    training = LMTraining(
        Backbone(model, train="full"),
        Numbers(),
        [f"{i} {i + 1}" for i in range(500, 540)],
        lambda prompt, response: float(sum(int(t) in paid for t in response.split())),
        config,
        ppo=config.ppo(lr="lin_3e-3", minibatches=4, value_clip=None),
    )
    with training.policy.reference() as reference:
        ids = torch.tensor([[500, 501]])
        states, _ = response_states(reference, Sequences(ids, torch.tensor([2]), torch.tensor([1])))
        tokens = torch.tensor(sorted(paid))
        p = float(score(states.expand(len(tokens), -1), reference.head, tokens).log_prob.exp().sum())
    odds = p * math.exp(1 / BETA)
    share, best = odds / (odds + 1 - p), BETA * math.log(odds + 1 - p)
    curve = []
    for _ in range(steps):
        stats = training.step().stats
        curve.append([stats["score"] / SIZE, stats["kl"] / SIZE])
    last = np.array(curve[-10:]).mean(0)
    return {
        "share": float(last[0]),
        "optimal_share": share,
        "objective_share": float((last[0] - BETA * last[1]) / best),
        "curve": curve,
        "peak_mb": common.peak_mb(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, help="80 with k1, 120 with exact, unless told otherwise")
    parser.add_argument("--fresh", action="store_true")
    args = parser.parse_args()
    kept = common.Kept("lm_optimum", fresh=args.fresh)
    rows = []
    for kl in ("k1", "exact"):
        for seed in range(args.seeds):
            steps = args.steps or STEPS[kl]
            made = kept.get(f"{kl} {seed} {steps}", lambda kl=kl, seed=seed, n=steps: run(kl, seed, n))
            good = abs(made["share"] - made["optimal_share"]) < 0.04 and made["objective_share"] > 0.93
            rows.append(
                [
                    kl,
                    seed,
                    made["share"],
                    made["optimal_share"],
                    made["objective_share"],
                    made["cpu_seconds"],
                    "yes" if good else "NO",
                ]
            )
            print(rows[-1], flush=True)
    print(common.table(["KL", "seed", "share", "optimum", "objective / optimum", "CPU-s", "met"], rows))


if __name__ == "__main__":
    main()
