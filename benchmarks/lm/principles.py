"""How well principles are judged: precision and recall on labelled answers that built nothing, and on hh-rlhf.

python benchmarks/lm/principles.py [--hh FILE.jsonl.gz] [--fresh]     results/lm_principles.json
needs `surefoot lm get minilm` and `surefoot lm get smollm2`; FILE is pairs of anthropics/hh-rlhf (MIT), measured only, never shown
"""

from __future__ import annotations

import argparse
import json
from functools import cache
from pathlib import Path
from typing import Any

import common
import torch

from surefoot.lm.constitution.classifier import PrincipleClassifier, measure, read_labelled
from surefoot.lm.constitution.principles import Constitution
from surefoot.lm.data import read_pairs

# [row, side, whether its last answer breaks a principle], by a person who had not seen what the classifier says. 110 answers of up
# to 260 letters were drawn at random; those that cannot be judged without the rest of the conversation are left out.
LABELS = Path(__file__).with_name("hh_labels.json")
# Breaches of the first test part that a reviewer wrote: a bomb, poison gas, self-harm, theft, a medical falsehood, two slanders, coercion.
FLAGRANT = (
    "To make a pipe bomb,",
    "Mix bleach and ammonia",
    "Cut deeper,",
    "Here is how to hot-wire",
    "Vaccines cause autism;",
    "Women are naturally worse",
    "Jews control",
    "You must leave your wife today.",
)

classifier = cache(PrincipleClassifier)


def by_rules(part: str) -> dict[str, Any]:
    """The same numbers for the signs of the shipped principles."""
    found = Constitution.shipped()
    answers = [(found.evaluate(a.answer)["flagged_principles"], a.breaks) for a in read_labelled(part)]
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


def flagrant() -> dict[str, bool]:
    """Whether any principle is flagged in each of the flagrant breaches."""
    texts = [a.answer for begin in FLAGRANT for a in read_labelled("test") if a.answer.startswith(begin)]
    return dict(zip(texts, classifier().flags(texts).any(1).tolist(), strict=True))


def on_labels(path: str) -> dict[str, Any]:
    """Precision and recall of any breach on answers of hh-rlhf that a person labelled."""
    pairs, labels = read_pairs(path), json.loads(LABELS.read_text())
    breaks = torch.tensor([label for _, _, label in labels])
    flagged = classifier().flags([getattr(pairs[row], side).strip() for row, side, _ in labels]).any(1)
    right = int((flagged & breaks).sum())
    return {
        "answers": len(labels),
        "breaches": int(breaks.sum()),
        "precision": right / max(1, int(flagged.sum())),
        "recall": right / int(breaks.sum()),
    }


def on_pairs(path: str, limit: int) -> dict[str, Any]:
    """Shares of chosen and rejected answers that are flagged, and how often a decided pair agrees with the people."""
    pairs = read_pairs(path)[:limit]
    chosen, rejected = (
        classifier().flags([getattr(p, s).strip() for p in pairs]).any(1) for s in ("chosen", "rejected")
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
    parser.add_argument("--limit", type=int, default=600)
    parser.add_argument("--fresh", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    kept = common.Kept("lm_principles", fresh=args.fresh)
    for part in ("fifth_test", "fourth_test", "third_test", "second_test", "test"):
        made = kept.get(part, lambda part=part: measure(classifier(), read_labelled(part)))
        rules = kept.get(f"{part} rules", lambda part=part: by_rules(part))
        names = [name for name in made if name != "cpu_seconds"]
        rows = [
            [part, n, *(made[n][k] for k in ("precision", "recall")), *(rules[n][k] for k in ("precision", "recall"))]
            for n in names
        ]
        print(common.table(["part", "principle", "precision", "recall", "rules: precision", "recall"], rows))
    print(kept.get("flagrant", flagrant))
    if args.hh:
        print(kept.get("hh labelled", lambda: on_labels(args.hh)))
        print(kept.get("hh", lambda: on_pairs(args.hh, args.limit)))


if __name__ == "__main__":
    main()
