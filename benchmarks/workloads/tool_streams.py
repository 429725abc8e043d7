"""Streams of decisions out of (query, right tool, descriptions), and what may happen to them on the way."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from surefoot.decide.encoders.encoder import Encoder, Likeness
from surefoot.decide.encoders.static import cache_root
from surefoot.decide.evaluation.datasets import read


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Queries as vectors, the right tool of each, the tools' descriptions as vectors, and who may be chosen when."""

    name: str
    x: np.ndarray
    right: np.ndarray
    tools: np.ndarray
    candidates: list[np.ndarray] | None
    """The tools of each query; None: all of them, always."""
    likeness: Likeness
    aside: np.ndarray
    """Queries that settings are chosen on; they are never scored."""

    def part(self, *, aside: bool) -> Task:
        """Only the queries set aside, or only the others."""
        rows = np.flatnonzero(self.aside == aside)
        own = None if self.candidates is None else [self.candidates[int(i)] for i in rows]
        return replace(self, x=self.x[rows], right=self.right[rows], candidates=own, aside=self.aside[rows])


def load(
    directory: Path, kind: str, encoder: Encoder, topics: Path | None = None, name: str = "", *, tuned: bool = False
) -> Task:
    """A data set with all its texts encoded. Of one that settings are `tuned` on, a fifth is set aside for that."""
    data = read(directory, kind, topics)
    return Task(
        name=name or directory.name,
        x=cached(encoder, data.texts),
        right=np.array(data.right),
        tools=cached(encoder, data.descriptions),
        candidates=None if data.candidates is None else [np.array(each) for each in data.candidates],
        likeness=encoder.likeness,
        aside=np.array([tuned and set_aside(text) for text in data.texts]),
    )


def set_aside(text: str) -> bool:
    """One text in five, the same ones on every machine and in every order."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) % 5 == 0


def cached(encoder: Encoder, texts: list[str]) -> np.ndarray:
    """Vectors of all texts, encoded once and kept in the user's cache."""
    key = hashlib.sha256("\0".join([encoder.name, *texts]).encode()).hexdigest()[:16]
    path = cache_root() / "benchmarks" / f"{encoder.name}-{key}.npy"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".tmp.npy")
        np.save(temporary, encoder.encode(texts))
        temporary.replace(path)
    return np.load(path)


@dataclass(frozen=True, slots=True)
class Moment:
    """One query of the stream."""

    query: int
    option: np.ndarray
    right: int
    """The tool's number."""


SCENARIOS = ("plain", "flips", "late", "drift", "tools")


def moments(task: Task, scenario: str, seed: int, count: int | None) -> Iterator[Moment]:
    """The stream of a seed: every query at most once, in an order of its own."""
    rng = np.random.default_rng([seed, 7])
    order = rng.permutation(len(task.x))[:count]
    every = np.arange(len(task.tools))
    moved, there = every.copy(), np.ones(len(every), bool)
    newcomers = rng.permutation(len(every))[: max(1, len(every) // 3)]
    leaving = rng.permutation(len(every))[: max(1, len(every) // 6)]
    if scenario == "tools" and task.candidates is None:
        there[newcomers] = False
    for t, query in enumerate(order):
        if scenario == "drift" and t == len(order) // 2:
            some = rng.permutation(len(every))[: max(2, len(every) // 2)]
            moved[some] = np.roll(some, 1)
        if scenario == "tools" and task.candidates is None:
            if t == len(order) // 3:
                there[newcomers] = True
            if t == 2 * len(order) // 3:
                there[leaving] = False
        option = every[there] if task.candidates is None else task.candidates[int(query)]
        right = int(moved[task.right[query]]) if task.candidates is None else int(task.right[query])
        if right in option:
            yield Moment(int(query), option, right)
