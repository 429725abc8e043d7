"""Steer sentiment on real weights with the guards on: a reward model on pairs made here, judges that it never sees.

python benchmarks/lm/sentiment.py [--seeds 13 14 15] [--steps 16] [--fluency 0.03] [--no-back] [--reward minilm] [--fresh]     results/lm_sentiment.json
needs `surefoot lm get smollm2`, `surefoot lm get minilm` and vaderSentiment
"""

from __future__ import annotations

import argparse
import re
from typing import Any

import common
import judges
import numpy as np
import torch
from judges import classifier, vader
from sentences import openings, sentences

from surefoot.lm.config import LMConfig
from surefoot.lm.constitution.compare import bootstrap
from surefoot.lm.data import PreferencePair
from surefoot.lm.policy.loading import Speech, load_backbone
from surefoot.lm.rewards.fluency import distinct
from surefoot.lm.rewards.reward_fit import train_reward_model
from surefoot.lm.rewards.reward_model import BackboneReward
from surefoot.lm.rewards.text_features import TextFeatures
from surefoot.lm.rewards.text_reward import TextReward
from surefoot.lm.sampling.sampler import generate
from surefoot.lm.sft import nll
from surefoot.lm.training import LMStep, LMTraining

ASK = "Write one sentence of a film review. It begins with: {}"


# Beyond a limit the run goes back and continues with a larger beta; answers that become alike are a limit too.
BACK: dict[str, Any] = {"over_budget": "back", "diversity_limit": 0.12}


def own_words(ask: str, text: str) -> list[str]:
    """Return the words of an answer without the opening that was asked for."""
    opening, words = (re.findall(r"\w+", x.lower()) for x in (ask.removeprefix(ASK.format("")), text))
    return words[len(opening) :] if words[: len(opening)] == opening else words


def run(seed: int, steps: int, lr: float, fluency: float, beta: float, kind: str, *, back: bool) -> dict[str, Any]:
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    train, held = ([ASK.format(opening) for opening in side] for side in openings())
    train, guarded = train[:80], train[80:]  # the guard looks at openings that are neither learned from nor measured
    config = LMConfig(
        steps=steps, prompts=32, max_new_tokens=28, temperature=0.8, top=6, beta=beta, fluency_weight=fluency,
        judge_every=3 if back else 4, judge_patience=4 if back else 3, nll_limit=0.12, repetition_limit=0.1, refusal_limit=0.1, kl_budget=20.0, seed=seed,
        **(BACK if back else {}),
    )  # fmt: skip
    backbone, tokenizer = load_backbone("smollm2", config)
    speech = Speech(tokenizer, backbone.model)
    good, bad = sentences("A")
    pairs = [PreferencePair(ASK.format("the film"), g, b) for g, b in zip(good[:120], bad[:120], strict=True)]
    if kind == "minilm":  # what `surefoot lm reward --model minilm` fits
        reward = TextReward(TextFeatures("minilm"))
        accuracy = reward.fit(pairs, seed=seed).accuracy
    else:
        reward = BackboneReward(backbone)
        fit = train_reward_model(reward, pairs, speech, epochs=30, lr=3e-3, validation=0.2, seed=seed)
        accuracy = fit.final_accuracy
    classify, readable = classifier(), judges.readable()

    def judge(responses: list[str]) -> list[float]:
        return classify(responses)

    training = LMTraining(
        backbone, tokenizer, train, reward, config,
        ppo=config.ppo(lr=lr, target_kl=0.05, minibatches=4, vf_coef=0.1), judge=judge, judge_prompts=guarded,
    )  # fmt: skip

    def look() -> dict[str, Any]:
        """Measure the policy on the held-out openings, two answers each, with the same random numbers every time."""
        prompts = [speech.prompt(p) for p in held * 2]
        generator = torch.Generator().manual_seed(1234)
        made = generate(training.policy, prompts, config.sampling, eos=speech.eos, generator=generator)
        texts = [speech.text(r.tokens) for r in made]
        with backbone.reference(), torch.no_grad():
            unlikely = nll(backbone, [(r.prompt, np.asarray(r.tokens)) for r in made])
        return {
            "classifier": classify(texts),
            "vader": vader(texts),
            "distinct_2": distinct([r.tokens for r in made[: len(held)]]),
            # A request says how the sentence begins, so that a copied opening is obedience and what follows is the writing.
            "own_distinct_2": distinct([own_words(p, t) for p, t in zip(held, texts, strict=False)]),
            "nll": float(unlikely.mean()),
            "kl": (sum(sum(r.log_prob) for r in made) + float(unlikely.sum())) / len(made),
            "readable": float(readable(texts).mean()),
            # Every fifth: all openings and all places before them occur.
            "texts": texts[: 2 * len(held) : 5][:20],
        }

    def row(step: LMStep) -> dict[str, float]:
        return {k: step.stats[k] for k in ("score", "kl", "judge", "beta") if k in step.stats}

    before = look()
    name = f"lm-sentiment-{kind}-{seed}-{steps}-{lr:g}-{fluency:g}-{beta:g}" + ("-back" if back else "")
    curve, earlier = common.go_on(name, training, row)
    after = look()
    moved = {n: bootstrap([a - b for a, b in zip(after[n], before[n], strict=True)]) for n in ("classifier", "vader")}
    return {
        "earlier_seconds": earlier,
        "reward": kind,
        "reward_accuracy": accuracy,
        "classifier_accuracy": classify.accuracy,
        "classifier": [float(np.mean(before["classifier"])), float(np.mean(after["classifier"]))],
        "vader": [float(np.mean(before["vader"])), float(np.mean(after["vader"]))],
        "change": moved,
        "kl": after["kl"],
        "best_step": training.guards.best_step,
        "distinct_2": [before["distinct_2"], after["distinct_2"]],
        "own_distinct_2": [before["own_distinct_2"], after["own_distinct_2"]],
        "nll": [before["nll"], after["nll"]],
        "readable": [before["readable"], after["readable"]],
        "readable_accuracy": readable.fit.accuracy,
        "stopped": training.stopped,
        "steps": training.steps,
        "curve": curve,
        "openings": [p.removeprefix(ASK.format("")) for p in (held * 2)[::5]][:20],
        "texts": [before["texts"], after["texts"]],
        "peak_mb": common.peak_mb(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[13, 14, 15])
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--lr", type=float, default=1.5e-3)
    parser.add_argument("--fluency", type=float, default=0.03, help="weight of the reference's log-prob in the score")
    parser.add_argument("--beta", type=float, default=0.025)
    parser.add_argument(
        "--back",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="beyond a limit go back and continue; limit diversity too",
    )
    parser.add_argument("--reward", choices=("head", "minilm"), default="minilm", help="head: on SmolLM2's last token")
    parser.add_argument("--fresh", action="store_true")
    args = parser.parse_args()
    kept, rows = common.Kept("lm_sentiment", fresh=args.fresh), []
    for seed in args.seeds:
        key = f"{seed} {args.fluency:g} {args.steps} {args.lr}" + ("" if args.reward == "head" else " minilm")
        key += f" {args.beta:g} back" if args.back else ""
        made = kept.get(
            key, lambda seed=seed: run(seed, args.steps, args.lr, args.fluency, args.beta, args.reward, back=args.back)
        )
        c, v, d, n, r = (made[name] for name in ("classifier", "vader", "distinct_2", "nll", "readable"))
        low = [made["change"][name][1] for name in ("classifier", "vader")]
        met = c[1] >= c[0] + 0.15 and low[0] > 0 and n[1] <= 1.15 * n[0] and r[1] >= 0.95 * r[0]
        rows.append(
            [
                seed,
                made["reward_accuracy"],
                f"{c[0]:.3f} → {c[1]:.3f}",
                f"{v[0]:.3f} → {v[1]:.3f}",
                made["kl"],
                f"{d[0]:.3f} → {d[1]:.3f}",
                f"{n[0]:.2f} → {n[1]:.2f}",
                f"{r[0]:.2f} → {r[1]:.2f}",
                made["cpu_seconds"],
                "yes" if met else "NO",
            ]
        )
    print(
        common.table(
            [
                "seed",
                "reward model",
                "classifier",
                "VADER",
                "nats",
                "distinct-2",
                "reference NLL",
                "readable",
                "CPU-s",
                "met",
            ],
            rows,
        )
    )


if __name__ == "__main__":
    main()
