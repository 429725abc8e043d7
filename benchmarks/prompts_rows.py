"""Rows of tasks with right answers, made from public data: which topic, which function, self-instruct, sums, BIG-Bench Hard."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path
from typing import Any

Row = dict[str, Any]

# Wordings of the same task, as different people would write them.
TOPICS = (
    "Which of these topics is the message about: {listed}?\n\n{text}",
    "Classify the customer message. Labels: {listed}.\n\nMessage: {text}",
    "{text}\n\nWhat does the customer want? Choose from: {listed}.",
    'You work for a bank. A customer writes: "{text}" Pick the right category.\nCategories:\n{lines}',
    "Read this and tell me the intent: {text}\nOptions:\n{lines}",
    'Topic of "{text}"? One of: {listed}',
)
FUNCTIONS = (
    "Which function answers this request?\n\n{text}\n\nFunctions:\n{lines}",
    "{text}\n\nChoose one of these tools:\n{lines}",
    "I have these functions:\n{lines}\n\nWhich one should I call for: {text}",
)
SUMS = (
    "What is {a} + {b} - {c}?",
    "Compute {a} plus {b} minus {c}.",
    "A shop has {a} apples, gets {b} more and sells {c}. How many are left?",
    "{a} + {b} - {c} =",
)


def topics(folder: Path, rng: random.Random, count: int) -> list[Row]:
    """Return banking77 queries with the right topic and four others."""
    with (folder / "banking77" / "train.csv").open(encoding="utf-8") as file:
        queries = list(csv.DictReader(file))
    names = json.loads((folder / "banking77" / "categories.json").read_text(encoding="utf-8"))
    rows: list[Row] = []
    for query in rng.sample(queries, count):
        wording, right = rng.randrange(len(TOPICS)), query["category"]
        options = [
            name.replace("_", " ").strip("?").lower()
            for name in (right, *rng.sample([name for name in names if name != right], 4))
        ]
        answer = options[0]
        rng.shuffle(options)
        filled = TOPICS[wording].format(
            text=query["text"].strip(), listed=", ".join(options), lines="\n".join(f"- {option}" for option in options)
        )
        rows.append({"task": f"topic {wording}", "prompt": filled, "answer": answer, "options": options})
    return rows


def functions(folder: Path, rng: random.Random, count: int) -> list[Row]:
    """Return BFCL queries with their two to four functions."""
    lines = (folder / "bfcl_multiple" / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    queries = [json.loads(line) for line in lines]
    short = [q for q in queries if len(q["tools"]) <= 4 and len(q["text"]) < 300 and q["text"].isascii()]
    rows: list[Row] = []
    for query in rng.sample(short, count):
        listed = "\n".join(f"- {t['name']}: {t['description'][:120].split('. ')[0]}" for t in query["tools"])
        wording = rng.randrange(len(FUNCTIONS))
        filled = FUNCTIONS[wording].format(text=query["text"].strip(), lines=listed)
        options = [tool["name"] for tool in query["tools"]]
        rows.append({"task": f"function {wording}", "prompt": filled, "answer": query["correct"], "options": options})
    return rows


def instructions(folder: Path, rng: random.Random, count: int) -> list[Row]:
    """Return self-instruct prompts whose reference is short; each is a task of its own."""
    lines = (folder / "prompts" / "prompts.jsonl").read_text(encoding="utf-8").splitlines()
    rows: list[Row] = []
    for row in map(json.loads, lines):
        text = row["prompt"] + (f"\n\n{row['input']}" if row.get("input") else "")
        reference = row.get("reference")
        short = (
            isinstance(reference, str) and 0 < len(reference) < 160 and len(row["prompt"] + row.get("input", "")) < 500
        )
        if short and row["source"].startswith("self"):
            rows.append({"task": f"instruction {row['id']}", "prompt": text, "answer": reference})
    return rng.sample(rows, min(count, len(rows)))


def sums(rng: random.Random, count: int) -> list[Row]:
    """Return small sums in four wordings."""
    rows: list[Row] = []
    for _ in range(count):
        a, b, c = rng.randrange(2, 60), rng.randrange(2, 40), rng.randrange(1, 30)
        c, wording = min(c, a + b), rng.randrange(len(SUMS))
        rows.append({"task": f"sum {wording}", "prompt": SUMS[wording].format(a=a, b=b, c=c), "answer": str(a + b - c)})
    return rows


def hard(folder: Path, rng: random.Random, each: int) -> list[Row]:
    """Return rows of BIG-Bench Hard (folder/NAME.json, MIT) with short inputs, `each` per task."""
    rows: list[Row] = []
    for path in sorted(folder.glob("*.json")):
        examples = [e for e in json.loads(path.read_text(encoding="utf-8"))["examples"] if len(e["input"]) < 420]
        if len(examples) >= 60:
            chosen = rng.sample(examples, each)
            rows += [{"task": f"bbh {path.stem}", "prompt": e["input"], "answer": e["target"]} for e in chosen]
    return rows


def all_rows(data: Path, bbh: Path | None, seed: int = 7) -> list[Row]:
    """Return the rows of the benchmark in random order."""
    rng = random.Random(seed)
    rows = topics(data, rng, 110) + functions(data, rng, 80) + instructions(data, rng, 120) + sums(rng, 40)
    rows += hard(bbh, rng, 10) if bbh is not None else []
    rng.shuffle(rows)
    return rows


def split(rows: list[Row], seed: int) -> tuple[list[Row], list[Row]]:
    """Return (training rows, held-out rows): no task is in both."""
    tasks = sorted({row["task"] for row in rows})
    random.Random(seed).shuffle(tasks)
    train = set(tasks[: len(tasks) // 2])
    return [r for r in rows if r["task"] in train], [r for r in rows if r["task"] not in train]
