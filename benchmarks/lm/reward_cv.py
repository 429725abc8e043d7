"""Reward models on hh-rlhf harmless pairs (measured only, never shown): five folds of `surefoot lm reward --model minilm`.

python benchmarks/lm/reward_cv.py --hh FILE.jsonl.gz [--seeds 3] [--fresh]     results/lm_reward.json
needs `surefoot lm get minilm`; FILE is 2,000 pairs of anthropics/hh-rlhf (MIT); with scikit-learn, TF-IDF is measured beside it
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import common
import numpy as np

from surefoot.lm.constitution.compare import wilson
from surefoot.lm.data import PreferencePair, read_pairs
from surefoot.lm.rewards.text_reward import FOLDS


def command(file: str, seed: int) -> dict[str, Any]:
    """What the documented command prints."""
    with tempfile.TemporaryDirectory() as out:
        words = [str(Path(sys.executable).with_name("surefoot")), "lm", "reward", "--model", "minilm", "--pairs", file]
        began = resource.getrusage(resource.RUSAGE_CHILDREN)
        run = subprocess.run(
            [*words, "-o", out, "--seed", str(seed), "--json"], capture_output=True, check=True, text=True
        )
        spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = spent.ru_utime + spent.ru_stime - began.ru_utime - began.ru_stime
    return json.loads(run.stdout) | {
        "earlier_seconds": seconds,
        "command": " ".join(["surefoot", *words[1:5], "--pairs FILE"]),
    }


def tfidf(pairs: list[PreferencePair], seed: int, strength: float) -> dict[str, Any]:
    """TF-IDF of words and pairs of words, and logistic regression on the difference of the two texts, over five folds."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    right = 0
    for fold in np.array_split(np.random.default_rng(seed).permutation(len(pairs)), FOLDS):
        rest = [i for i in range(len(pairs)) if i not in set(fold.tolist())]
        words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2)
        words.fit([getattr(pairs[i], side) for side in ("chosen", "rejected") for i in rest])
        gap = words.transform([p.chosen for p in pairs]) - words.transform([p.rejected for p in pairs])
        fit = LogisticRegression(C=strength, fit_intercept=False, max_iter=500)
        both = np.concatenate([gap[rest].toarray(), -gap[rest].toarray()])
        fit.fit(both, np.repeat([1, 0], len(rest)))
        right += int((gap[fold] @ fit.coef_[0] > 0).sum())
    return {"accuracy": right / len(pairs), "interval": wilson(right, len(pairs)), "pairs": len(pairs)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hh", required=True, help="hh-rlhf pairs, .jsonl or .jsonl.gz")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--fresh", action="store_true")
    args = parser.parse_args()
    kept, pairs = common.Kept("lm_reward", fresh=args.fresh), read_pairs(args.hh)
    rows: list[list[Any]] = []
    for seed in range(args.seeds):
        made = kept.get(f"minilm {seed}", lambda seed=seed: command(args.hh, seed))
        rows.append([f"minilm, folds {seed}", made["pairs"], made["accuracy"], *made["interval"]])
    for seed in range(args.seeds):
        made = kept.get(f"tfidf {seed}", lambda seed=seed: tfidf(pairs, seed, 0.3))
        rows.append([f"TF-IDF, folds {seed}", made["pairs"], made["accuracy"], *made["interval"]])
    print(common.table(["model", "pairs", "accuracy", "low", "high"], rows))


if __name__ == "__main__":
    main()
