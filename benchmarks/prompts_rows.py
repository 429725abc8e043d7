"""Rows of tasks with right answers, made from public data: topics, intents, functions, self-instruct, sums, BIG-Bench Hard."""

from __future__ import annotations

import csv
import json
import random
from collections import Counter
from dataclasses import dataclass
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
INTENTS = (
    'A user says to a voice assistant: "{text}"\nWhich command is meant? {listed}.',
    "Command: {text}\nPossible intents:\n{lines}\n\nIntent",
    "Sort this request into one of the classes {listed}.\n\nRequest: {text}",
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
        queries = [(row["text"], row["category"]) for row in csv.DictReader(file)]
    return _chosen("topic", TOPICS, queries, rng, count)


def intents(folder: Path, rng: random.Random, count: int) -> list[Row]:
    """Return requests of CLINC150 and HWU64 with the right intent and four others, as far as these data are there."""
    queries: list[tuple[str, str]] = []
    if (path := folder / "clinc150" / "data_full.json").exists():
        queries += [(text, label) for text, label in json.loads(path.read_text(encoding="utf-8"))["test"]]
    if (path := folder / "hwu64" / "raw.txt").exists():
        rows = [line.rsplit(",", 1) for line in path.read_text(encoding="utf-8").splitlines()]
        queries += [(row[0], row[1]) for row in rows if len(row) == 2]
    return _chosen("intent", INTENTS, queries, rng, count) if queries else []


def _chosen(
    kind: str, wordings: tuple[str, ...], queries: list[tuple[str, str]], rng: random.Random, count: int
) -> list[Row]:
    """Return rows that ask for the label of a query among five."""
    rows, names = list[Row](), sorted({label for _, label in queries})
    for text, right in rng.sample(queries, count):
        wording = rng.randrange(len(wordings))
        labels = (right, *rng.sample([name for name in names if name != right], 4))
        options = [label.replace("_", " ").strip("?").lower() for label in labels]
        answer = options[0]
        rng.shuffle(options)
        lines = "\n".join(f"- {option}" for option in options)
        filled = wordings[wording].format(text=text.strip(), listed=", ".join(options), lines=lines)
        rows.append({"task": f"{kind} {wording}", "prompt": filled, "answer": answer, "options": options})
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


# Draws that mutations and policy were developed with; their rows are in no other draw.
DEVELOPED_WITH = (7, 11)


def all_rows(data: Path, bbh: Path | None, seed: int) -> list[Row]:
    """Return the rows of the benchmark in random order."""
    rng = random.Random(seed)
    rows = topics(data, rng, 110) + functions(data, rng, 80) + instructions(data, rng, 120) + sums(rng, 40)
    if seed in DEVELOPED_WITH:
        rows += hard(bbh, rng, 10) if bbh is not None else []
    else:
        rows += intents(data, rng, 60) + (hard(bbh, rng, 10) if bbh is not None else [])
        known = {row["prompt"] for earlier in DEVELOPED_WITH for row in all_rows(data, bbh, earlier)}
        rows = [row for row in rows if row["prompt"] not in known]
    rng.shuffle(rows)
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Rows of two sets of tasks, without a task in common; intents are always held out."""

    train: list[Row]
    """Measured while a way of improving is chosen."""
    shown: list[Row]
    """Rows of the held-out tasks that only serve as examples, at most `SHOWN` per task."""
    held_out: list[Row]
    """Measured at the end."""


SHOWN = 4


def split(rows: list[Row], seed: int, train: int, held_out: int) -> Split:
    """Return that many rows for training and for the end."""
    tasks = sorted({row["task"] for row in rows if not row["task"].startswith("intent")})
    random.Random(seed).shuffle(tasks)
    training = set(tasks[: len(tasks) // 2])
    others, shown, left = [row for row in rows if row["task"] not in training], list[Row](), list[Row]()
    sizes = Counter(row["task"] for row in others)
    used = Counter[str]()
    for row in others:
        # A task with one row, such as an instruction, has none to show.
        if used[row["task"]] < min(SHOWN, sizes[row["task"]] - 1):
            used[row["task"]] += 1
            shown.append(row)
        else:
            left.append(row)
    return Split(train=[row for row in rows if row["task"] in training][:train], shown=shown, held_out=left[:held_out])
