"""Search over the parameter ranges that are declared on the nodes of a graph; the score is the return of its episodes."""

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
from surefoot.graph.spec.params import find_param
from surefoot.graph.spec.text import load_graph, save_graph
from surefoot.learn.search_ranges import MOVING, Choice, Dimension, Range, Space
from surefoot.train.tune.env_trials import replace_start, start_of

# Graphs are restored in the middle of a rollout, whose length cannot change.
MOVING_HERE = MOVING - {"rollout_steps"}


def task(path: Path) -> GraphTask:
    """Return the task of `surefoot tune graph.json`."""
    return GraphTask(load_graph(path), str(path))


class GraphTask:
    """A graph with ranges. A setting is called node.parameter."""

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph, self.name = graph, name
        self.space: Space = {}
        self.base: dict[str, Any] = {}
        moving: set[str] = set()
        for id, node in graph.nodes.items():
            declared = REGISTRY.get(node.type)
            for name_of, bounds in node.ranges.items():
                param, setting = find_param(declared, name_of), f"{id}.{name_of}"
                value = start_of(node.params.get(param.name, param.default))
                self.space[setting] = _dimension(bounds, value).with_value(value)
                self.base[setting] = value
                if declared.trains and MOVING_HERE & {param.name, *param.aliases}:
                    moving.add(setting)
        self.moving = frozenset(moving)
        if not self.space:
            raise GraphError(
                f'{name} has no ranges to search; add to a node "ranges": {{"lr": {{"low": 1e-5, "high": 1e-2, "log": true}}, '
                'or {"choices": [32, 64]}'
            )

    def trial_run(self, params: dict[str, Any], seeds: Sequence[int]) -> GraphTrialRun:
        return GraphTrialRun(self.with_params(params), seeds)

    def settings(self, params: dict[str, Any]) -> dict[str, Any]:
        return dict(params)

    def with_params(self, params: Mapping[str, Any]) -> Graph:
        """Return a copy of the graph with these values on its nodes."""
        graph = self.graph.copy()
        for setting, value in params.items():
            id, _, name = setting.rpartition(".")
            node = graph.nodes[id]
            # Studies of earlier versions hold older parameter names.
            param = find_param(REGISTRY.get(node.type), name)
            node.params[param.name] = replace_start(node.params.get(param.name, param.default), param.read(value))
        return graph

    def write_best(self, directory: Path, params: dict[str, Any]) -> Path:
        """Write the graph with the best values, ready to run, and return its path."""
        path = directory / "best.json"
        save_graph(self.with_params(params), path)
        return path


class GraphTrialRun:
    """Runs of one graph, one per seed, advanced together."""

    def __init__(self, graph: Graph, seeds: Sequence[int]) -> None:
        # Checkpoint and Recorder nodes of a trial write here; only the score is of interest.
        self._folder = tempfile.TemporaryDirectory(prefix="surefoot-tune-")
        self.engines = [Interpreter(graph, into=self._folder.name, seed=seed) for seed in seeds]
        self.seeds = seeds

    def advance(self, share: float, stop: Callable[[], bool]) -> list[float] | None:
        for engine in self.engines:
            # Output of Print nodes would mix with the progress of the search.
            with redirect_stdout(StringIO()):
                engine.run(math.ceil(share * engine.plan.ticks) - engine.ticks, stop)
            if stop():
                return None
        return [_score(engine) for engine in self.engines]

    def state(self) -> dict[str, Any]:
        if (reason := why_not(self.engines[0])) is not None:
            raise RunError(f"a trial of this graph cannot be resumed: {reason}")
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
    """Return the mean return of the last hundred episodes of the first trainer; NaN if none is finished."""
    for node in engine.nodes.values():
        ticks = getattr(node, "ticks", None)
        if ticks is not None and hasattr(ticks, "episodes"):
            # `recent` covers the last hundred episodes.
            mean = ticks.episodes.recent()[0]
            return float("nan") if mean is None else float(mean)
    raise GraphError("no trainer of this graph counts episodes, so its trials have no score")


def _dimension(bounds: Mapping[str, Any], value: Any) -> Dimension:
    if "choices" in bounds:
        return Choice(tuple(tuple(each) if isinstance(each, list) else each for each in bounds["choices"]))
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return Range(float(bounds["low"]), float(bounds["high"]), bool(bounds.get("log", False)), is_integer)
