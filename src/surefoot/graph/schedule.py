"""The schedule of a checked graph: which nodes fire in a tick, in which order, on which inputs. Nothing here imports torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from surefoot.errors import GraphError
from surefoot.graph.runtime.base import node_seed, ticks_for
from surefoot.graph.spec.check import check, declared_types
from surefoot.graph.spec.checked import Checked
from surefoot.graph.spec.declare import NodeType, Port
from surefoot.graph.spec.model import Edge, End, Graph, RunSettings
from surefoot.graph.spec.types import CONST, HANDLES, ONCE, TICK, Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """An input of a firing."""

    port: Port
    edge: Edge | None = None
    """None if nothing is connected."""
    source: End | None = None
    held: bool = False
    """Keeps the latest value until the next one."""
    decides: bool = False
    """The node fires only if it has a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """A node in the schedule."""

    id: str
    declared: NodeType
    params: Mapping[str, Any]
    when: str
    """first (in the first tick only), tick (in every tick), or there (when its deciding inputs have values)."""
    inputs: tuple[Input, ...]
    outputs: tuple[str, ...]
    clock: Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """All firings of a tick in order."""

    checked: Checked
    firings: tuple[Firing, ...]
    run: RunSettings
    alone: frozenset[str]
    """Nodes that use the seed of the run, as they are the only ones of their type."""

    @property
    def graph(self) -> Graph:
        return self.checked.flat

    @property
    def streams(self) -> int:
        """Steps per tick, summed over all sources of experience."""
        return sum(each.params[name] * streams for each, name, streams in self.sources()) or 1

    def sources(self) -> list[tuple[Firing, str, int]]:
        """Return the sources of experience: node, parameter with the number of copies, streams per copy."""
        return [(each, *each.declared.streams(each.params)) for each in self.firings if each.declared.streams]

    @property
    def horizons(self) -> list[int]:
        """Ticks between two updates of each trainer."""
        return [each.params["rollout_steps"] for each in self.firings if each.declared.name == "PPOTrainerNode"]

    @property
    def ticks(self) -> int:
        """Length of the run in ticks."""
        return ticks_for(self.run.total_steps, self.streams, *self.horizons)

    @property
    def has_code(self) -> bool:
        return any(each.declared.name == "Code" for each in self.firings)

    def require_trust(self, trust: bool) -> None:
        """Raise `GraphError` if the graph has Code nodes and is not trusted."""
        if self.has_code and not trust:
            id = next(each.id for each in self.firings if each.declared.name == "Code")
            raise GraphError(f"{id}: this graph contains Python code; read it, then pass --trust to run it")


def schedule(graph: Graph | Checked, **run: Any) -> Schedule:
    """Return the schedule of a graph; `run` overrides seed, total_steps or path. Raise `GraphError` on errors."""
    checked = (graph if isinstance(graph, Checked) else check(graph)).require()
    types = declared_types(checked)
    into: dict[str, dict[str, Edge]] = {id: {} for id in checked.flat.nodes}
    for edge in checked.flat.edges:
        # Edges may use an alias of a port.
        port = types[edge.target.node].input(edge.target.port)
        assert port is not None
        into[edge.target.node][port.name] = edge
    firings = tuple(_firing(id, types[id], into[id], checked, types) for id in checked.order)
    by_type: dict[str, list[str]] = {}
    for each in firings:
        by_type.setdefault(each.declared.name, []).append(each.id)
    alone = frozenset(ids[0] for ids in by_type.values() if len(ids) == 1)
    settings = RunSettings(**asdict(checked.flat.run) | run)
    return Schedule(checked=checked, firings=firings, run=settings, alone=alone)


def _firing(
    id: str, declared: NodeType, into: Mapping[str, Edge], checked: Checked, types: Mapping[str, NodeType]
) -> Firing:
    clock = checked.fires[id]
    inputs: list[Input] = []
    for port in declared.inputs:
        edge = into.get(port.name)
        if edge is None:
            inputs.append(Input(port=port))
            continue
        output = types[edge.source.node].output(edge.source.port)
        assert output is not None
        source = End(edge.source.node, output.name)
        source_clock = checked.clocks[source]
        # A constant and a value of every tick are there anyway; only rarer values must be held for later ticks.
        held = port.sampled and source_clock not in (CONST, TICK)
        decides = not (port.sampled or port.event or port.optional) and source_clock != CONST
        inputs.append(Input(port=port, edge=edge, source=source, held=held, decides=decides))
    deciding = any(each.decides for each in inputs)
    when = "first" if clock in (CONST, ONCE) else "tick" if clock == TICK or not deciding else "there"
    outputs = tuple(port.name for port in declared.outputs)
    # A Split declares eight outputs; those without rows do not exist.
    if declared.name == "Split":
        outputs = outputs[: len(checked.params[id]["sizes"])]
    params = checked.params[id]
    return Firing(
        id=id, declared=declared, params=params, when=when, inputs=tuple(inputs), outputs=outputs, clock=clock
    )


@dataclass(slots=True)
class Setting:
    """Where nodes are built."""

    into: Path = field(default_factory=Path)
    """Directory of the run."""
    trust: bool = False
    """Whether Code nodes may run."""


def build(plan: Schedule, only: set[str] | None = None, setting: Setting | None = None) -> dict[str, Any]:
    """Return the callables of all nodes, or of the nodes in `only`."""
    setting = setting or Setting()
    plan.require_trust(setting.trust)
    return {each.id: _build_one(plan, each, setting) for each in plan.firings if only is None or each.id in only}


def _build_one(plan: Schedule, firing: Firing, setting: Setting) -> Any:
    run = plan.run
    known: dict[str, tuple[str, Any]] = {
        # Two environments with the same seed would produce the same episodes.
        "seed": ("seed", run.seed if firing.id in plan.alone else node_seed(firing.id, run.seed)),
        "total_steps": ("total_steps", run.total_steps),
        "path": ("path", run.path),
        "folder": ("into", setting.into),
    }
    runtime = runtime_of(firing.declared)
    # Custom nodes are functions: they get their parameters and nothing else.
    if not isinstance(runtime, type):
        return partial(runtime, **firing.params)
    try:
        return runtime(**firing.params, **dict(known[need] for need in firing.declared.needs))
    except GraphError as why:
        raise GraphError(f"{firing.id}: {why}") from why


def runtime_of(declared: NodeType) -> Any:
    """Return the callable of a node type."""
    module, _, name = declared.runtime.partition(":")
    result: Any = import_module(module)
    for part in name.split("."):
        result = getattr(result, part)
    return result


def process_groups(plan: Schedule) -> list[list[str]]:
    """Return groups of nodes that share handles and so a process; the first has the trainers and all other nodes."""
    parent = {each.id: each.id for each in plan.firings}

    def root(id: str) -> str:
        while parent[id] != id:
            parent[id] = parent[parent[id]]
            id = parent[id]
        return id

    # Union-find over the edges that carry handles.
    for firing in plan.firings:
        for each in firing.inputs:
            if each.source is not None and plan.checked.types[each.source].kind in HANDLES:
                parent[root(firing.id)] = root(each.source.node)
    groups: dict[str, list[str]] = {}
    for firing in plan.firings:
        groups.setdefault(root(firing.id), []).append(firing.id)
    # Only environments get their own process: they do most of the work outside of the learner.
    worlds = {each.id for each, *_ in plan.sources()}
    remote = sorted(ids for ids in groups.values() if worlds & set(ids))
    home = [each.id for each in plan.firings if not any(each.id in ids for ids in remote)]
    return [home, *remote] if home else remote
