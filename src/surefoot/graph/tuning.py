"""A search over a graph: the ranges that are declared on its nodes' parameters, judged by what its episodes return."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from surefoot.errors import GraphError, RunError
from surefoot.graph.nodes import REGISTRY
from surefoot.graph.run.interpreter import Interpreter
from surefoot.graph.run.snapshot import restore, snapshot, why_not
from surefoot.graph.spec.model import Graph
from surefoot.graph.spec.text import load_graph, save_graph
from surefoot.learn.search_ranges import MOVING, Choice, Dimension, Range, Space
from surefoot.train.tune.env_trials import along, start_of

MOVING_HERE = MOVING - {"rollout_steps"}
"""A graph is put back in the middle of a rollout, which keeps its length."""


def task(path: Path) -> GraphTask:
    """What `surefoot tune graph.json` searches."""
    return GraphTask(load_graph(path), str(path))


class GraphTask:
    """A graph with ranges on it. A setting is called node.parameter."""

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph, self.name = graph, name
        self.space: Space = {}
        self.base: dict[str, Any] = {}
        moving: set[str] = set()
        for id, node in graph.nodes.items():
            declared = REGISTRY.get(node.type)
            for param, told in node.ranges.items():
                known = declared.param(param)
                assert known is not None, "ranges are read with the graph"
                value = start_of(node.params.get(known.name, known.default))
                self.space[f"{id}.{param}"] = _dimension(told, value).with_value(value)
                self.base[f"{id}.{param}"] = value
                if declared.trains and MOVING_HERE & {known.name, *known.aliases}:
                    moving.add(f"{id}.{param}")
        self.moving = frozenset(moving)
        if not self.space:
            raise GraphError(
                f'{name} says nothing of where to search; give a node "ranges": {{"learning_rate": {{"low": 1e-5, '
                '"high": 1e-2, "log": true}}, or {"choices": [32, 64]}'
            )

    def contest(self, params: dict[str, Any], seeds: Sequence[int]) -> GraphContest:
        return GraphContest(self.with_params(params), seeds)

    def settings(self, params: dict[str, Any]) -> dict[str, Any]:
        return dict(params)

    def with_params(self, params: Mapping[str, Any]) -> Graph:
        """The graph with these values on its nodes."""
        graph = self.graph.copy()
        for name, value in params.items():
            id, _, param = name.rpartition(".")
            node = graph.nodes[id]
            known = REGISTRY.get(node.type).param(param)
            assert known is not None
            node.params[param] = along(node.params.get(param, known.default), known.read(value))
        return graph

    def write_best(self, directory: Path, params: dict[str, Any]) -> Path:
        """The graph to go on with, ready to be run."""
        path = directory / "best.json"
        save_graph(self.with_params(params), path)
        return path


class GraphContest:
    """Runs of one graph, one a seed, taken forward together."""

    def __init__(self, graph: Graph, seeds: Sequence[int]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="surefoot-tune-")
        self.engines = [Interpreter(graph, into=self._folder.name, seed=seed) for seed in seeds]
        self.seeds = seeds

    def advance(self, share: float, stop: Callable[[], bool]) -> list[float] | None:
        for engine in self.engines:
            with redirect_stdout(StringIO()):  # what its Print nodes say of a hundred trials, nobody reads
                engine.run(math.ceil(share * engine.plan.ticks) - engine.ticks, stop)
            if stop():
                return None
        return [_score(engine) for engine in self.engines]

    def state(self) -> dict[str, Any]:
        if (reason := why_not(self.engines[0])) is not None:
            raise RunError(f"a trial of this graph cannot be taken up again: {reason}")
        return {f"seed {seed}": snapshot(engine) for seed, engine in zip(self.seeds, self.engines, strict=True)}

    def set_state(self, parts: dict[str, Any]) -> None:
        for seed, engine in zip(self.seeds, self.engines, strict=True):
            with redirect_stdout(StringIO()):
                restore(engine, parts[f"seed {seed}"])

    def close(self) -> None:
        for engine in self.engines:
            engine.close()
        self._folder.cleanup()


def _score(engine: Interpreter) -> float:
    """Mean return of the last hundred episodes of the first trainer; nothing finished is nothing known."""
    for node in engine.nodes.values():
        ticks = getattr(node, "ticks", None)
        if ticks is not None and hasattr(ticks, "episodes"):
            mean = ticks.episodes.recent()[0]
            return float("nan") if mean is None else float(mean)
    raise GraphError("no trainer of this graph counts episodes, so there is nothing to judge a trial by")


def _dimension(told: Mapping[str, Any], value: Any) -> Dimension:
    if "choices" in told:
        return Choice(tuple(tuple(each) if isinstance(each, list) else each for each in told["choices"]))
    whole = isinstance(value, int) and not isinstance(value, bool)
    return Range(float(told["low"]), float(told["high"]), bool(told.get("log", False)), whole)
