"""How well principles are judged: precision and recall on labelled answers that built nothing, and on hh-rlhf pairs.

python benchmarks/lm/principles.py [--hh FILE.jsonl.gz] [--fresh]     results/lm_principles.json
needs `surefoot lm get minilm`; FILE is pairs of anthropics/hh-rlhf (MIT), measured only, never shown
"""

from __future__ import annotations

import argparse
from typing import Any

import common
import torch

from surefoot.lm.constitution.classifier import PrincipleClassifier, measure, read_labelled
from surefoot.lm.constitution.principles import Constitution
from surefoot.lm.data import read_pairs


def by_rules() -> dict[str, Any]:
    """The same numbers for the signs of the shipped principles."""
    found = Constitution.shipped()
    answers = [(found.evaluate(a.answer)["flagged_principles"], a.breaks) for a in read_labelled("test")]
    results: dict[str, Any] = {}
    for name in [*(p.name for p in found.principles), "any"]:
        hits = [(bool(flags) if name == "any" else name in flags, label) for flags, label in answers]
        breaches = [hit for hit, label in hits if (label if name == "any" else label == name)]
        wrong = sum(hit for hit, label in hits if label is None)
        results[name] = {
            "precision": sum(breaches) / max(1, sum(breaches) + wrong),
            "recall": sum(breaches) / len(breaches),
            "breaches": len(breaches),
        }
    return results


def on_pairs(path: str, limit: int) -> dict[str, Any]:
    """Shares of chosen and rejected answers that are flagged, and how often a decided pair agrees with the people."""
    pairs, classifier = read_pairs(path)[:limit], PrincipleClassifier()
    chosen, rejected = (
        classifier.chances([getattr(p, s).strip() for p in pairs]).amax(1) > 0 for s in ("chosen", "rejected")
    )
    decided = chosen != rejected
    return {
        "pairs": len(pairs),
        "chosen": float(chosen.float().mean()),
        "rejected": float(rejected.float().mean()),
        "decided": float(decided.float().mean()),
        "agrees": float((rejected & decided).sum() / decided.sum().clamp(min=1)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hh", help="hh-rlhf pairs, .jsonl or .jsonl.gz")
    parser.add_argument("--limit", type=int, default=2000)
    parser.add_argument("--fresh", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    kept = common.Kept("lm_principles", fresh=args.fresh)
    made = kept.get("classifier", lambda: measure(PrincipleClassifier(), read_labelled("test")))
    rules = kept.get("rules", by_rules)
    names = [name for name in made if name != "cpu_seconds"]
    rows = [
        [n, *(made[n][k] for k in ("precision", "recall")), *(rules[n][k] for k in ("precision", "recall"))]
        for n in names
    ]
    print(common.table(["principle", "precision", "recall", "rules: precision", "recall"], rows))
    if args.hh:
        print(kept.get("hh", lambda: on_pairs(args.hh, args.limit)))


if __name__ == "__main__":
    main()
