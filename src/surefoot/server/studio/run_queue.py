"""Runs that wait for the active one: seeds and sweeps of one click form a batch."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from surefoot.errors import GraphError
from surefoot.graph.spec.check import check
from surefoot.graph.spec.model import Graph
from surefoot.graph.spec.ops import apply

# Runs that one click adds, and runs that wait in all: more are a search, which `surefoot tune` does better.
MOST_RUNS, MOST_WAITING = 50, 200


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedRun:
    """A run that waits."""

    id: int
    batch: int
    doc: str
    graph: Graph
    label: str
    """What differs from the document, such as "seed 3, lr = 0.001"."""
    trust: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return what a tab shows."""
        return {"id": self.id, "doc": self.doc, "label": self.label}


class RunQueue:
    """The runs that wait, in the order in which they start."""

    def __init__(self) -> None:
        self.waiting: list[QueuedRun] = []
        self._ids = itertools.count(1)

    def add(
        self,
        doc: str,
        graph: Graph,
        *,
        seeds: int = 1,
        sweep: Mapping[str, Sequence[Any]] | None = None,
        trust: bool = False,
    ) -> None:
        """Add a run per seed and combination of the values in `sweep`, {node.parameter: values}; all of them or none."""
        check(graph).require()
        batch = next(self._ids)
        runs = [
            QueuedRun(id=next(self._ids), batch=batch, doc=doc, graph=variant, label=label, trust=trust)
            for variant, label in variants(graph, seeds, sweep or {})
        ]
        if len(self.waiting) + len(runs) > MOST_WAITING:
            raise GraphError(f"{len(self.waiting)} runs are waiting; at most {MOST_WAITING} can")
        self.waiting += runs

    def take(self) -> QueuedRun | None:
        """Remove and return the next run."""
        return self.waiting.pop(0) if self.waiting else None

    def drop(self, *, id: int | None = None, batch: int | None = None) -> None:
        """Remove one run, a batch, or all."""
        everything = id is None and batch is None
        self.waiting = [each for each in self.waiting if not (everything or each.id == id or each.batch == batch)]

    def to_json(self) -> list[dict[str, Any]]:
        """Return the waiting runs for a tab."""
        return [each.to_json() for each in self.waiting]


def variants(graph: Graph, seeds: Any, sweep: Any) -> list[tuple[Graph, str]]:
    """Return a graph and a label per seed and combination of values; raise `GraphError` if one of them is invalid.

    `seeds` and `sweep` (lists of values by node.parameter) are what a page sent.
    """
    if type(seeds) is not int:
        raise GraphError(f"seeds is {str(seeds)[:40]!r}; it must be a whole number")
    if not isinstance(sweep, dict) or not all(isinstance(values, list) for values in sweep.values()):
        raise GraphError("a sweep has a list of values for each node.parameter")
    count = seeds
    for values in sweep.values():
        count *= len(values)
    if not 1 <= count <= MOST_RUNS:
        raise GraphError(f"these are {count} runs; one click starts 1 to {MOST_RUNS}")
    result: list[tuple[Graph, str]] = []
    for values in itertools.product(*sweep.values()):
        changed, labels = graph.copy(), list[str]()
        for name, value in zip(sweep, values, strict=True):
            node, _, param = name.rpartition(".")
            apply(changed, {"op": "set", "id": node, "params": {param: value}})
            labels.append(f"{param} = {value}")
        check(changed).require()
        for number in range(seeds):
            seeded = changed.copy()
            seeded.run.seed += number
            result.append((seeded, ", ".join([*labels, f"seed {seeded.run.seed}"])))
    return result
