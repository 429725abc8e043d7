"""From a graph that holds together to what happens in a tick: who fires, in which order, on what. No torch here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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
    """Where one argument of a firing comes from."""

    port: Port
    edge: Edge | None
    """None if nothing is connected."""
    source: End | None
    held: bool
    """Keeps its last value."""
    decides: bool
    """Must be there for the node to fire."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """One node in a tick."""

    id: str
    declared: NodeType
    params: Mapping[str, Any]
    when: str
    """first (only in the first tick), tick, or there (where its inputs are)."""
    inputs: tuple[Input, ...]
    outputs: tuple[str, ...]
    clock: Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """All firings of a tick in their order."""

    checked: Checked
    firings: tuple[Firing, ...]
    run: RunSettings
    alone: frozenset[str]
    """Nodes that take the run's own seed, as they are the only ones of their kind."""

    @property
    def graph(self) -> Graph:
        return self.checked.flat

    @property
    def streams(self) -> int:
        """Steps in a tick: of environments, or whatever a graph learns from."""
        return sum(each.params[name] * streams for each, name, streams in self.sources()) or 1

    def sources(self) -> list[tuple[Firing, str, int]]:
        """Where experience comes from: the node, its parameter of copies, and the streams of one copy."""
        return [(each, *each.declared.streams(each.params)) for each in self.firings if each.declared.streams]

    @property
    def horizons(self) -> list[int]:
        """Ticks between two updates, of each trainer."""
        return [each.params["horizon_length"] for each in self.firings if each.declared.name == "PPOTrainerNode"]

    @property
    def ticks(self) -> int:
        """How long the run is."""
        return ticks_for(self.run.total_steps, self.streams, *self.horizons)

    @property
    def has_code(self) -> bool:
        return any(each.declared.name == "Code" for each in self.firings)


def schedule(graph: Graph | Checked, **run: Any) -> Schedule:
    """The schedule of a graph; `run` may say another seed, total_steps or path. Raises if the graph has errors."""
    checked = (graph if isinstance(graph, Checked) else check(graph)).require()
    types = declared_types(checked)
    given = checked.flat.run
    same: dict[str, Any] = {"seed": given.seed, "total_steps": given.total_steps, "path": given.path}
    settings = RunSettings(**same | run)
    into: dict[str, dict[str, Edge]] = {id: {} for id in checked.flat.nodes}
    for edge in checked.flat.edges:
        port = types[edge.target.node].input(edge.target.port)
        assert port is not None
        into[edge.target.node][port.name] = edge
    firings = tuple(_firing(id, types[id], into[id], checked, types) for id in checked.order)
    kinds: dict[str, list[str]] = {}
    for each in firings:
        kinds.setdefault(each.declared.name, []).append(each.id)
    alone = frozenset(ids[0] for ids in kinds.values() if len(ids) == 1)
    return Schedule(checked=checked, firings=firings, run=settings, alone=alone)


def _firing(
    id: str, declared: NodeType, into: Mapping[str, Edge], checked: Checked, types: Mapping[str, NodeType]
) -> Firing:
    clock = checked.fires[id]
    inputs: list[Input] = []
    for port in declared.inputs:
        edge = into.get(port.name)
        if edge is None:
            inputs.append(Input(port=port, edge=None, source=None, held=False, decides=False))
            continue
        output = types[edge.source.node].output(edge.source.port)
        assert output is not None
        source = End(edge.source.node, output.name)
        comes = checked.clocks[source]
        inputs.append(
            Input(
                port=port,
                edge=edge,
                source=source,
                held=port.sampled and comes not in (CONST, TICK),
                decides=not (port.sampled or port.event or port.optional) and comes != CONST,
            )
        )
    deciding = any(each.decides for each in inputs)
    when = "first" if clock in (CONST, ONCE) else "tick" if clock == TICK or not deciding else "there"
    outputs = tuple(port.name for port in declared.outputs)
    if declared.name == "Split":
        outputs = outputs[: len(checked.params[id]["sizes"])]
    return Firing(
        id=id,
        declared=declared,
        params=checked.params[id],
        when=when,
        inputs=tuple(inputs),
        outputs=outputs,
        clock=clock,
    )


@dataclass(slots=True)
class Setting:
    """What nodes are built in."""

    into: Path = field(default_factory=Path)
    """The run's directory."""
    trust: bool = False
    """Code nodes may run."""


def build(plan: Schedule, only: set[str] | None = None, setting: Setting | None = None) -> dict[str, Any]:
    """The callables of all nodes, or of some."""
    setting = setting or Setting()
    if plan.has_code and not setting.trust:
        ids = [each.id for each in plan.firings if each.declared.name == "Code"]
        raise GraphError(f"{ids[0]}: this graph holds code of its own; read it, then say --trust to let it run")
    return {each.id: build_one(plan, each, setting) for each in plan.firings if only is None or each.id in only}


def build_one(plan: Schedule, firing: Firing, setting: Setting) -> Any:
    """The callable of one node."""
    extras: dict[str, Any] = {}
    for need in firing.declared.needs:
        match need:
            case "seed":
                extras["seed"] = plan.run.seed if firing.id in plan.alone else node_seed(firing.id, plan.run.seed)
            case "total_steps":
                extras["total_steps"] = plan.run.total_steps
            case "path":
                extras["path"] = plan.run.path
            case _:
                extras["into"] = setting.into
    made = runtime_of(firing.declared)
    if not isinstance(made, type):  # a function of somebody's own
        return partial(made, **firing.params)
    try:
        return made(**firing.params, **extras)
    except GraphError as why:
        raise GraphError(f"{firing.id}: {why}") from why


def runtime_of(declared: NodeType) -> Any:
    """The callable behind a kind of node."""
    module, _, name = declared.runtime.partition(":")
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def islands(plan: Schedule) -> list[list[str]]:
    """Nodes that must share a process, because handles go between them; the first island has the trainers and the rest."""
    parent = {each.id: each.id for each in plan.firings}

    def root(id: str) -> str:
        while parent[id] != id:
            parent[id] = parent[parent[id]]
            id = parent[id]
        return id

    for firing in plan.firings:
        for each in firing.inputs:
            if each.source is not None and plan.checked.types[each.source].kind in HANDLES:
                parent[root(firing.id)] = root(each.source.node)
    groups: dict[str, list[str]] = {}
    for firing in plan.firings:
        groups.setdefault(root(firing.id), []).append(firing.id)
    worlds = {each.id for each, *_ in plan.sources()}
    away = [ids for ids in groups.values() if worlds & set(ids)]
    gone = {id for ids in away for id in ids}
    home = [each.id for each in plan.firings if each.id not in gone]
    return [home, *sorted(away)] if home else sorted(away)
