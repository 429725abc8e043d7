"""Does a policy of prompt mutations help a small language model with tasks that it was not trained on?

Each row is a prompt with its right answer (prompts_rows.py). Half of the tasks train the policy, the others are held out; the
metric is the log-likelihood of the right answer per token. Every way of improving gets the same number of model evaluations
on the training rows and none on held-out rows. Up to four rows of each held-out task are shown as examples and not measured.

python benchmarks/prompts.py --data DIR [--bbh DIR] [--seeds 3] [--evaluations 250] [--accuracy] [--gepa] [--cache FILE]
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from prompts_rows import Row, Split, all_rows, split
from surefoot.decide.prompts.examples import Examples
from surefoot.decide.prompts.improve import (
    Improved,
    at_random,
    best_of_n,
    best_sequence,
    best_single,
    fixed,
    improve,
    interval,
)
from surefoot.decide.prompts.policy import PromptConfig, PromptPolicy, train
from surefoot.decide.prompts.tasks import TaskRow, TaskScorer
from surefoot.lm.rewards.answer_model import AnswerModel

RESULTS = Path(__file__).parent / "results" / "prompts.json"
PAIRS = Path(__file__).parent / "workloads" / "prompt_pairs.json"


# Each costs an evaluation per option.
ACCURACY_ROWS = 50


class CachedModel:
    """A model whose log-likelihoods are kept in a file, so that an interrupted benchmark continues."""

    likelihoods = True

    def __init__(self, name: str, path: Path | None) -> None:
        self.name, self.path = name, path
        self.model: AnswerModel | None = None
        self.known: dict[tuple[str, str], float] = {}
        if path is not None and path.exists():
            for line in path.open(encoding="utf-8"):
                prompt, answer, value = json.loads(line)
                self.known[prompt, answer] = value

    def log_likelihood(self, prompts: Sequence[str], answers: Sequence[str]) -> np.ndarray:
        pairs = list(zip(prompts, answers, strict=True))
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self.known]
        # In parts: what was measured before an interruption is in the file.
        for begin in range(0, len(new), 16):
            part = new[begin : begin + 16]
            self.model = self.model or AnswerModel(self.name)
            values = self.model.log_likelihood([p for p, _ in part], [a for _, a in part])
            self.known |= zip(part, (float(x) for x in values), strict=True)
            if self.path is not None:
                with self.path.open("a", encoding="utf-8") as file:
                    file.writelines(json.dumps([*pair, self.known[pair]]) + "\n" for pair in part)
        return np.array([self.known[pair] for pair in pairs])

    def reply(self, prompts: Sequence[str]) -> list[str]:
        raise NotImplementedError("this benchmark has rows with answers only")


def as_task(rows: Sequence[Row]) -> list[TaskRow]:
    return [TaskRow(prompt=row["prompt"], answer=row["answer"]) for row in rows]


def compared(
    rows: Split, model: CachedModel, evaluations: int, held_out: TaskScorer
) -> tuple[dict[str, list[Improved]], dict[str, Any]]:
    """Return held-out rows improved in every way but the policy's, and what was chosen."""
    config, training = PromptConfig(), TaskScorer(as_task(rows.train), model)
    prompts, own, shown = training.prompts, Examples(training.rows), Examples(as_task(rows.shown))
    sequences = {
        "best single": best_single(training, prompts, config, evaluations, own),
        "best of 16": best_of_n(training, prompts, config, evaluations, own, n=16),
        "best sequence": best_sequence(training, prompts, config, evaluations, own),
    }
    ways = {"no change": fixed((), config), "random": at_random(config, examples=shown)}
    ways |= {name: fixed(names, config, shown) for name, names in sequences.items()}
    results = {name: improve(choose, held_out.prompts, held_out) for name, choose in ways.items()}
    return results, {"sequences": {name: list(names) for name, names in sequences.items()}}


def trained(
    rows: Split, model: CachedModel, seed: int, evaluations: int, held_out: TaskScorer
) -> tuple[list[Improved], dict[str, Any]]:
    """Return held-out rows improved by a policy that was trained on the others."""
    training = TaskScorer(as_task(rows.train), model)
    policy = PromptPolicy(seed=seed, examples=Examples(training.rows))
    curve = train(policy, training, training.prompts, evaluations)
    policy.examples = Examples(as_task(rows.shown))
    chosen = improve(policy.steps, held_out.prompts, held_out)
    times = Counter("+".join(change.mutation for change in each.changes) or "no change" for each in chosen)
    facts: dict[str, Any] = {"seed": seed, "scores": curve[-1][0], "chosen": times.most_common(8)}
    if seed == 0:
        facts["pairs"] = pairs(policy, model)
    return chosen, facts


def pairs(policy: PromptPolicy, model: CachedModel) -> list[dict[str, Any]]:
    """Return twenty prompts of ours before and after, for the documentation; each may serve the others as an example."""
    rows = [TaskRow(**row) for row in json.loads(PAIRS.read_text(encoding="utf-8"))]
    policy.examples, scorer = Examples(rows), TaskScorer(rows, model)
    answers = {row.prompt: row.answer for row in rows}
    return [
        {**each.to_json(), "answer": answers[each.original]} for each in improve(policy.steps, scorer.prompts, scorer)
    ]


def accuracy(rows: Sequence[Row], results: dict[str, list[Improved]], model: CachedModel) -> dict[str, list[float]]:
    """Return by way, for each row with options, whether the right one is the most likely."""
    options = {row["prompt"]: row for row in [row for row in rows if "options" in row][:ACCURACY_ROWS]}
    found: dict[str, list[float]] = {}
    for name in ("no change", "policy", "best of 16"):
        chosen = [(each.text, options[each.original]) for each in results[name] if each.original in options]
        texts = [text for text, row in chosen for _ in row["options"]]
        values = iter(model.log_likelihood(texts, [option for _, row in chosen for option in row["options"]]))
        best = [max((next(values), option) for option in row["options"])[1] for _, row in chosen]
        found[name] = [float(b == row["answer"]) for b, (_, row) in zip(best, chosen, strict=True)]
    return found


def by_row(results: Sequence[dict[str, list[Improved]]], name: str, other: str = "no change") -> list[float]:
    """Return the difference in log-likelihood between two ways for each held-out row, averaged over the policies."""
    values = defaultdict[str, list[float]](list)
    for each in results:
        for a, b in zip(each[name], each[other], strict=True):
            values[a.original].append(a.score - b.score)
    return [float(np.mean(x)) for x in values.values()]


def rounded(values: tuple[float, ...]) -> list[float]:
    return [round(x, 3) for x in values]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--bbh", type=Path, help="folder with the files of BIG-Bench Hard")
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--evaluations", type=int, default=250)
    parser.add_argument("--rows", type=int, default=150, help="rows for training")
    parser.add_argument("--held-out", type=int, default=120, help="rows that are measured at the end")
    parser.add_argument("--rows-seed", type=int, default=31, help="another draw of rows and tasks")
    parser.add_argument(
        "--accuracy", action="store_true", help="also measure how often the right option is the likeliest"
    )
    parser.add_argument("--gepa", action="store_true", help="also run GEPA; needs the package gepa")
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    rows = split(all_rows(args.data, args.bbh, args.rows_seed), args.rows_seed, args.rows, args.held_out)
    model = CachedModel(args.model, args.cache)
    held_out, about = TaskScorer(as_task(rows.held_out), model), list[dict[str, Any]]()
    others, facts = compared(rows, model, args.evaluations, held_out)
    print(
        facts, {name: round(float(np.mean([e.gain for e in found])), 3) for name, found in others.items()}, flush=True
    )
    if args.gepa:
        from prompts_gepa import instruction

        found = instruction(rows.train, model, args.evaluations)
        facts["GEPA's instruction"] = found
        prefixed = [[("GEPA", f"{found}\n\n{prompt}")] for prompt in held_out.prompts]
        chosen = dict(zip(held_out.prompts, prefixed, strict=True))
        others["GEPA"] = improve(chosen.__getitem__, held_out.prompts, held_out)
    policies, shown = list[list[Improved]](), list[dict[str, Any]]()
    for seed in range(args.seeds):
        improved, seed_facts = trained(rows, model, seed, args.evaluations, held_out)
        policies.append(improved)
        about.append(seed_facts)
        shown = shown or seed_facts.pop("pairs")
        print(f"{seed_facts}: {np.mean([each.gain for each in improved]):+.3f}", flush=True)
    about.append(facts)
    results = [{"no change": others["no change"], "policy": policy, **others} for policy in policies]
    right: dict[str, list[float]] = {}
    if args.accuracy:
        right = accuracy(rows.held_out, results[0], model)
    content = summary(args, rows, results, about, right)
    content["pairs"] = shown
    args.out.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(json.dumps(content["ways"], indent=1), content["accuracy"], content["by kind"])


def summary(
    args: argparse.Namespace,
    rows: Split,
    results: Sequence[dict[str, list[Improved]]],
    about: list[dict[str, Any]],
    right: dict[str, list[float]],
) -> dict[str, Any]:
    """Return gains with their intervals over held-out rows, averaged over seeds."""
    ways: dict[str, Any] = {}
    for name in results[0]:
        sizes = [float(each.tokens_added) for found in results for each in found[name]]
        ways[name] = {"gain": rounded(interval(by_row(results, name))), "tokens": round(float(np.mean(sizes)), 1)}
        if name not in ("policy", "no change"):
            ways[name]["policy minus this"] = rounded(interval(by_row(results, "policy", name)))
    kinds = defaultdict[str, list[float]](list)
    kind_of = {row["prompt"]: row["task"].split()[0] for row in rows.held_out}
    for found in results:
        for each in found["policy"]:
            kinds[kind_of[each.original]].append(each.gain)
    return {
        "model": args.model,
        "train": {"rows": len(rows.train), "tasks": len({row["task"] for row in rows.train})},
        "held-out": {"rows": len(rows.held_out), "tasks": len({row["task"] for row in rows.held_out})},
        "seeds": len(results),
        "evaluations": args.evaluations,
        "ways": ways,
        "accuracy": {name: rounded(interval(values)) for name, values in right.items()},
        "by kind": {kind: round(float(np.mean(values)), 3) for kind, values in sorted(kinds.items())},
        "per seed": about,
    }


if __name__ == "__main__":
    main()
