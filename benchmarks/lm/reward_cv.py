"""Reward models: 5-fold cross-validation on hh-rlhf harmless pairs (measured only, never shown), and on sentiment pairs.

python benchmarks/lm/reward_cv.py --hh FILE.jsonl.gz [--fresh]     results/lm_reward.json
needs `surefoot lm get smollm2`; FILE is 2,000 pairs of anthropics/hh-rlhf (MIT)
"""

from __future__ import annotations

import argparse
from typing import Any

import common
import numpy as np
import torch
from sentences import sentences

from surefoot.lm.constitution.compare import wilson
from surefoot.lm.data import PreferencePair, read_pairs
from surefoot.lm.download import cache_root
from surefoot.lm.policy.loading import Speech, best_dtype, load_model, load_tokenizer
from surefoot.lm.rewards.reward_fit import pair_features, train_reward_model
from surefoot.lm.rewards.reward_model import RewardModel

CHUNK = 100
"""Pairs whose features are kept together, so that a stop loses a minute."""


def features(
    name: str, model: RewardModel, pairs: list[PreferencePair], speech: Speech, max_length: int
) -> tuple[Any, Any]:
    """What the trunk makes of every text, kept in the user's cache."""
    place = cache_root() / "benchmarks" / f"lm-reward-{name}-{len(pairs)}-{max_length}-{len(model.trunk.layers)}"
    place.mkdir(parents=True, exist_ok=True)
    found: list[np.ndarray] = []
    for begin in range(0, len(pairs), CHUNK):
        file = place / f"{begin:05d}.npy"
        if not file.is_file():
            both = pair_features(model, pairs[begin : begin + CHUNK], speech, max_length=max_length)
            np.save(file, torch.stack(both).numpy())
            print(f"{name}: {min(begin + CHUNK, len(pairs))} of {len(pairs)} pairs read", flush=True)
        found.append(np.load(file))
    chosen, rejected = torch.from_numpy(np.concatenate(found, 1))
    return chosen, rejected


def folds(
    name: str,
    pairs: list[PreferencePair],
    *,
    count: int,
    max_length: int,
    lr: float,
    weight_decay: float,
    layers: int = 30,
) -> dict[str, Any]:
    """Accuracy on each fold of a head fitted to the others; the trunk, its first `layers`, is asked once a text."""
    torch.set_num_threads(1)
    cpu = torch.device("cpu")
    base = load_model("smollm2", dtype=best_dtype("auto", cpu), device=cpu)
    base.model.layers = base.model.layers[:layers]
    speech = Speech(load_tokenizer("smollm2"), base)
    chosen, rejected = features(name, RewardModel(base, frozen=True), pairs, speech, max_length)
    order = torch.randperm(len(pairs), generator=torch.Generator().manual_seed(0))
    right, each = 0, []
    for fold in range(count):
        test = order[fold::count]
        out = set(test.tolist())
        train = torch.tensor([i for i in order.tolist() if i not in out])
        torch.manual_seed(fold)
        head = RewardModel(base, frozen=True)
        train_reward_model(
            head, [pairs[i] for i in train.tolist()], speech, epochs=40, lr=lr, weight_decay=weight_decay,
            features=(chosen[train], rejected[train]), seed=fold,
        )  # fmt: skip
        with torch.no_grad():
            hits = int((head.scored(chosen[test]) > head.scored(rejected[test])).sum())
        right += hits
        each.append(hits / len(test))
        print(f"fold {fold}: {each[-1]:.3f}", flush=True)
    return {"accuracy": right / len(pairs), "interval": wilson(right, len(pairs)), "folds": each, "pairs": len(pairs)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hh", help="hh-rlhf pairs, .jsonl or .jsonl.gz")
    parser.add_argument("--limit", type=int, default=2000)
    parser.add_argument("--fresh", action="store_true")
    args = parser.parse_args()
    kept, rows = common.Kept("lm_reward", fresh=args.fresh), []
    good, bad = sentences("A")
    pairs = [PreferencePair("", g, b) for g, b in zip(good, bad, strict=True)]
    made = kept.get("sentiment", lambda: folds("sentiment", pairs, count=5, max_length=64, lr=3e-3, weight_decay=0.01))
    rows.append(
        [
            "sentiment",
            made["pairs"],
            made["accuracy"],
            made["interval"][0],
            0.82,
            "yes" if made["accuracy"] >= 0.82 else "NO",
        ]
    )
    if args.hh:
        pairs = read_pairs(args.hh)[: args.limit]
        how: dict[str, Any] = {"count": 5, "max_length": 128, "lr": 1e-3, "weight_decay": 0.1, "layers": 16}
        made = kept.get(f"hh {args.limit}", lambda: folds("hh", pairs, **how))
        rows.append(
            [
                "hh-rlhf harmless",
                made["pairs"],
                made["accuracy"],
                made["interval"][0],
                0.55,
                "yes" if made["interval"][0] > 0.55 else "NO",
            ]
        )
    print(common.table(["pairs", "n", "accuracy", "lower 95 %", "bar", "met"], rows))


if __name__ == "__main__":
    main()
