"""The tables of docs/lm/measured.md out of benchmarks/results/lm_*.json; benchmarks/tables.py puts them there."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parents[1] / "results"
NOT_YET = "not measured yet"


def read(name: str) -> dict[str, Any]:
    path = RESULTS / f"lm_{name}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def met(good: bool) -> str:
    return "met" if good else "not met"


def table(head: str, rows: list[str]) -> str:
    return "\n".join([head, "|---" * (head.count("|") - 1) + "|", *rows]) if rows else NOT_YET


def rule() -> str:
    rows = []
    for key, made in sorted(read("rule").items()):
        name, seed, *_ = key.split()
        rows.append(
            f"| {name} | {seed} | {made['before']:.0%} → **{made['satisfied']:.0%}** | {made['tokens']:,} | "
            f"{made['curve'][-1][1]:.1f} | {made['cpu_seconds'] / 60:.1f} | {met(made['satisfied'] >= 0.9)} |"
        )
    return table("| method | seed | responses that keep to the rule | tokens | nats | CPU-minutes | ≥ 90 % |", rows)


def sentiment() -> str:
    rows = []
    for key, made in sorted(read("sentiment").items(), key=lambda run: int(run[0].split()[0])):
        c, v, d, n, r = (made[name] for name in ("classifier", "vader", "distinct_2", "nll", "readable"))
        low = [made["change"][name][1] for name in ("classifier", "vader")]
        back = f", back to {made['best_step']}" if made["stopped"] else ""
        continues = ", continues" if key.endswith("back") else ""
        _, fluency, _, _, *kind = key.split()  # seed, fluency, steps, learning rate, then minilm, beta, back
        beta = kind[1] if len(kind) > 1 else "0.025" if kind else "0.04"
        setting = f"{'minilm' if kind else 'head on SmolLM2'}, {beta}, {fluency}{continues}"
        good = c[1] >= c[0] + 0.15 and low[0] > 0 and n[1] <= 1.15 * n[0] and r[1] >= 0.95 * r[0]
        rows.append(
            f"| {setting} | {key.split()[0]} | {c[0]:.3f} → **{c[1]:.3f}** (change ≥ {low[0]:+.3f}) | "
            f"{v[0]:.3f} → **{v[1]:.3f}** (≥ {low[1]:+.3f}) | {n[0]:.2f} → {n[1]:.2f} | {r[0]:.0%} → {r[1]:.0%} | "
            f"{made['kl']:.1f} | {d[0]:.3f} → {d[1]:.3f} | {made['steps']}{back} | {made['cpu_seconds'] / 60:.1f} | {met(good)} |"
        )
    head = "| reward model, β, fluency | seed | classifier | VADER | reference NLL | readable | nats | distinct-2 | steps | CPU-minutes | |"
    return table(head, rows)


def reward() -> str:
    results = read("reward")
    baseline = [made["accuracy"] for key, made in results.items() if key.startswith("tfidf")]
    rows = []
    for key, made in results.items():
        kind, seed = key.split()
        low, high = made["interval"]
        text = f"**{made['accuracy']:.3f}** [{low:.3f}, {high:.3f}]"
        if kind == "tfidf":
            rows.append(f"| TF-IDF, logistic regression | {seed} | {text} | | |")
            continue
        good = made["accuracy"] >= 0.646 and low > max(baseline, default=0.626)
        rows.append(f"| `lm reward --model minilm` | {seed} | {text} | {made['calibration_error']:.3f} | {met(good)} |")
    return table("| model | folds | accuracy over 5 folds [95 %] | calibration error | ≥ 0.646, above TF-IDF |", rows)


PARTS = {
    "fifth_test": "fifth",
    "fourth_test": "fourth",
    "third_test": "third",
    "second_test": "second",
    "test": "first",
}


def pooled(parts: list[dict[str, float]]) -> dict[str, float]:
    """The same numbers over several test parts."""
    found = sum(made["recall"] * made["breaches"] for made in parts)
    flagged = sum(made["recall"] * made["breaches"] / made["precision"] if made["precision"] else 0.0 for made in parts)
    breaches = sum(made["breaches"] for made in parts)
    return {"precision": found / max(flagged, 1.0), "recall": found / breaches, "breaches": breaches}


def principles() -> str:
    results = read("principles")
    parts = {name: (results[key], results[f"{key} rules"]) for key, name in PARTS.items() if key in results}
    names = [name for name in results.get("test", {}) if name != "cpu_seconds"]
    if len(parts) == len(PARTS):
        parts["all"] = tuple({n: pooled([part[i][n] for part in parts.values()]) for n in names} for i in (0, 1))  # pyright: ignore[reportArgumentType]
    rows = [
        f"| {part} | {name.replace('_', ' ')} | {made[name]['breaches']:.0f} | **{made[name]['precision']:.2f}** | "
        f"**{made[name]['recall']:.2f}** | {rules[name]['precision']:.2f} | {rules[name]['recall']:.2f} | "
        f"{met(made[name]['precision'] >= 0.9 and made[name]['recall'] >= 0.8)} |"
        for part, (made, rules) in parts.items()
        for name in names
    ]
    return table(
        "| test | principle | breaches | precision | recall | rules: precision | recall | ≥ 0.9 and ≥ 0.8 |", rows
    )


def principles_hh() -> str:
    results = read("principles")
    found = [hit for name, hit in results.get("flagrant", {}).items() if name != "cpu_seconds"]
    rows = [f"| flagrant breaches | {len(found)} | {sum(found)} of {len(found)} found |"] if found else []
    if made := results.get("hh labelled"):
        rows.append(
            f"| hh-rlhf, labelled by a person | {made['answers']}, {made['breaches']} of them breaches | "
            f"precision {made['precision']:.2f}, recall {made['recall']:.2f} |"
        )
    if made := results.get("hh"):
        rows.append(
            f"| hh-rlhf, pairs | {made['pairs']} | flagged: {made['chosen']:.0%} of the chosen, {made['rejected']:.0%} of the rejected; "
            f"of {made['decided']:.0%} decided pairs {made['agrees']:.0%} as the people |"
        )
    return table("| set | answers | result |", rows)


def constitution() -> str:
    rows: list[str] = []
    for key, made in sorted(read("constitution").items(), key=lambda run: [int(x) for x in run[0].split()[2:0:-1]]):
        algorithm, seed, steps = key.split()[:3]
        (b, a), (s, t), (n, m), (d, e) = (made[name] for name in ("violations", "on_subject", "nll", "distinct_2"))
        good = b >= 0.15 and a <= b / 2 and t >= 0.95 * s and m <= 1.15 * n and e >= 0.85 * d
        rows.append(
            f"| {algorithm} | {steps} | {seed} | {b:.0%} → **{a:.0%}** | {s:.0%} → **{t:.0%}** | {n:.2f} → {m:.2f} | {d:.2f} → {e:.2f} | "
            f"{sum(made['seconds'].values()) / 60:.1f} | {met(good)} |"
        )
    return table(
        "| method | steps | seed | violations | on the subject | reference NLL | distinct-2 | CPU-minutes | all four |",
        rows,
    )


def pairs(rows: list[tuple[str, str, str]]) -> str:
    """Twenty texts before and after, for a person to read."""
    texts = [(" ".join(x.split()) for x in row) for row in rows[:20]]
    lines = [f"{prompt}\n  before  {before}\n  after   {after}" for prompt, before, after in texts]
    return "\n".join(["```text", *lines, "```"])


def constitution_pairs() -> str:
    # Of the benchmark's default setting, its first seed.
    made = read("constitution").get("dpo 8 50 0.0004")
    return pairs([(a["prompt"], a["before"], a["after"]) for a in made["answers"][::4]]) if made else NOT_YET


def sentiment_pairs() -> str:
    # Of the benchmark's default setting, its first seed.
    runs = sorted(read("sentiment").items(), key=lambda run: (not run[0].endswith("back"), int(run[0].split()[0]) < 13))
    made = next((made for _, made in runs if "openings" in made), None)
    if made is None:
        return NOT_YET
    return pairs(list(zip(made["openings"], *made["texts"], strict=True)))


def optimum() -> str:
    rows = []
    for key, made in sorted(read("optimum").items()):
        kl, seed, steps = key.split()
        off = abs(made["share"] - made["optimal_share"])
        rows.append(
            f"| {kl} | {seed} | {steps} | {made['share']:.3f} | {made['optimal_share']:.3f} | "
            f"{made['objective_share']:.3f} | {made['cpu_seconds']:.0f} | {met(off < 0.04 and made['objective_share'] > 0.93)} |"
        )
    return table("| KL | seed | steps | share | optimal share | objective / optimum | CPU-s | |", rows)


def speed() -> str:
    found = read("speed")
    if not found:
        return NOT_YET
    from speed import BARS  # pyright: ignore[reportMissingImports]  # the benchmark beside this file

    def median(name: str, what: str) -> float | None:
        each = [made[what] for key, made in found.items() if key.startswith(f"{name} #")]
        return statistics.median(each) if each else None

    rows = []
    for ours, theirs, bar, less in BARS:
        a, b = median(ours, "step"), median(theirs, "step")
        if a is not None and b is not None:
            memory = (median(theirs, "peak_mb") or 0) / (median(ours, "peak_mb") or 1)
            rows.append(
                f"| {ours}: {a:.2f} s, {median(ours, 'peak_mb'):,.0f} MB | {theirs}: {b:.2f} s, "
                f"{median(theirs, 'peak_mb'):,.0f} MB | **{b / a:.1f} ×** | {bar:g}: {met(b / a >= bar)} | {memory:.1f} × | "
                + (f"{less:g}: {met(memory >= less)} |" if less else "|")
            )
    return table("| ours: CPU-seconds a step, peak memory | TRL 1.12.0 | faster | bar | less memory | bar |", rows)
