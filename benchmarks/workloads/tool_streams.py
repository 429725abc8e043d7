"""Streams of decisions made of (query, right tool, descriptions), and the regimes that disturb them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from surefoot.decide.encoders.encoder import Encoder, Likeness
from surefoot.decide.encoders.static import cache_root
from surefoot.decide.evaluation.datasets import Dataset, read

REGIMES = ("plain", "flips", "missing", "late", "drift", "tools")
FLIPPED, MISSING, LATE = 0.1, 0.3, 200
"""Share of wrong rewards, share of outcomes that never arrive, and decisions between a decision and its outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Queries as vectors, the right tool of each, and the tools' descriptions as vectors."""

    name: str
    x: np.ndarray
    right: np.ndarray
    tools: np.ndarray
    likeness: Likeness
    outside: np.ndarray
    """Queries that no tool is right for."""


def clinc(directory: Path, domains: bool = False) -> tuple[Dataset, list[str]]:
    """Return CLINC150's queries by intent or by domain, and its out-of-scope queries."""
    full = json.loads((directory / "data_full.json").read_text())
    rows = [row for part in ("train", "val", "test") for row in full[part]]
    outside = [text for part in ("oos_train", "oos_val", "oos_test") for text, _ in full[part]]
    groups: dict[str, list[str]] = json.loads((directory / "domains.json").read_text())
    if not domains:
        groups = {label: [label] for label in sorted({label for _, label in rows})}
    words = {name: name.replace("_", " ") for name in groups}
    described = [
        f"{words[name]}: {', '.join(labels).replace('_', ' ')}" if domains else words[name]
        for name, labels in groups.items()
    ]
    index = {label: i for i, labels in enumerate(groups.values()) for label in labels}
    texts, right = [text for text, _ in rows], [index[label] for _, label in rows]
    return Dataset(texts=texts, right=right, names=list(groups), descriptions=described, candidates=None), outside


def load(root: Path, encoder: Encoder) -> list[Task]:
    """Return the tasks with 10, 77, 150 and 200 tools, as far as their data are below `root`."""
    banking = read(root / "banking77", "labels")
    here = (root / "clinc150" / "data_full.json").exists()
    intents, outside = clinc(root / "clinc150") if here else (None, [])
    made = dict[str, tuple[Dataset, list[str]]]()
    topics = read(root / "banking77", "labels", Path(__file__).with_name("banking_topics.json"))
    made["10"] = (clinc(root / "clinc150", domains=True)[0], outside) if here else (topics, [])
    made["77"] = (banking, outside)
    if intents is not None:
        made["150"] = (intents, outside)
        first = [i for i, label in enumerate(banking.right) if label < 50]
        both = Dataset(
            texts=intents.texts + [banking.texts[i] for i in first],
            right=intents.right + [150 + banking.right[i] for i in first],
            names=intents.names + banking.names[:50],
            descriptions=intents.descriptions + banking.descriptions[:50],
            candidates=None,
        )
        made["200"] = (both, outside)
    vectors = _Encoded(encoder)
    return [
        Task(
            name=name,
            x=vectors(data.texts),
            right=np.array(data.right),
            tools=vectors(data.descriptions),
            likeness=encoder.likeness,
            outside=vectors(other),
        )
        for name, (data, other) in made.items()
    ]


class _Encoded:
    """Vectors of lists of texts, encoded once and kept in the user's cache."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self._known: dict[str, np.ndarray] = {}

    def __call__(self, texts: list[str]) -> np.ndarray:
        if not texts:
            return np.zeros((0, self.encoder.dim), np.float32)
        missing = [text for text in dict.fromkeys(texts) if text not in self._known]
        if missing:
            key = hashlib.sha256("\0".join([self.encoder.name, *missing]).encode()).hexdigest()[:16]
            path = cache_root() / "benchmarks" / f"{self.encoder.name}-{key}.npy"
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                temporary = path.with_suffix(".tmp.npy")
                np.save(temporary, self.encoder.encode(missing))
                temporary.replace(path)
            self._known |= zip(missing, np.load(path), strict=True)
        return np.stack([self._known[text] for text in texts])


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One query of the stream, and what changes before it."""

    x: np.ndarray
    option: np.ndarray
    """Indices of the tools that can be chosen."""
    described: np.ndarray
    """[tools, d]: by index."""
    right: int
    flipped: bool
    observed: bool
    """False: the outcome of this decision never arrives."""


def moments(task: Task, regime: str, seed: int, count: int) -> Iterator[Moment]:
    """Yield the stream of a seed: every query at most once, in random order.

    drift: half of the tools swap meaning in the middle. tools: a third arrives after a third of the stream, a quarter gets a
    new name (a new index, the same description) in the middle, a sixth leaves after two thirds.
    """
    rng, tools = np.random.default_rng([seed, 7]), len(task.tools)
    order = rng.permutation(len(task.x))[:count]
    come, renamed, go = (rng.permutation(tools)[: max(1, tools // share)] for share in (3, 4, 6))
    swapped = rng.permutation(tools)[: max(2, tools // 2)]
    chance = rng.random((len(order), 2))
    meaning, described, present = np.arange(tools), task.tools, np.ones(tools, bool)
    if regime == "tools":
        present[come] = False
    option = np.flatnonzero(present)
    for t, query in enumerate(order):
        if regime == "drift" and t == len(order) // 2:
            meaning[swapped] = np.roll(swapped, 1)
        if regime == "tools" and t in (len(order) // 3, len(order) // 2, 2 * len(order) // 3):
            if t == len(order) // 3:
                present[come] = True
            elif t == len(order) // 2:
                described = np.concatenate([described, task.tools[renamed]])
                present = np.concatenate([present, np.ones(len(renamed), bool)])
                present[renamed] = False
                meaning[renamed] = tools + np.arange(len(renamed))
            else:
                present[meaning[go]] = False
            option = np.flatnonzero(present)
        right = int(meaning[task.right[query]])
        if present[right]:
            yield Moment(
                x=task.x[query],
                option=option,
                described=described,
                right=right,
                flipped=regime == "flips" and bool(chance[t, 0] < FLIPPED),
                observed=regime != "missing" or bool(chance[t, 1] >= MISSING),
            )
