"""Whether an output may be connected to an input, decided for unfinished graphs before the edge is drawn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from surefoot.errors import GraphError
from surefoot.graph.nodes import REGISTRY
from surefoot.graph.spec.check import check, guess_types
from surefoot.graph.spec.checked import Checked
from surefoot.graph.spec.declare import NodeType, Port, code_type
from surefoot.graph.spec.model import MERGE, Delay, Edge, End, Graph, as_end
from surefoot.graph.spec.ops import Op, connect_op
from surefoot.graph.spec.subgraphs import SUBGRAPH, ports_of
from surefoot.graph.spec.types import ANY, Type, misfit

READY = "ready"
"""Initial value of a delayed trigger, so that nodes that wait for it start in the first tick."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether an edge may be drawn: the reason against it or "", and whether it needs a delay as it closes a loop."""

    why: str = ""
    delay: bool = False
    replaces: str = ""
    """The output that the input is connected to already."""

    def to_json(self) -> dict[str, Any]:
        return {"ok": not self.why, "why": self.why, "delay": self.delay, "replaces": self.replaces}


def fits(graph: Graph, source: End | str) -> dict[str, Fit]:
    """Return {input: whether `source` may be connected to it} for all inputs of the graph."""
    source = as_end(source)
    type, upstream = _type_of(graph, source), _upstream(graph, source.node)
    occupied = {edge.target: str(edge.source) for edge in graph.edges}
    ends = [(End(id, port.name), port) for id in graph.nodes for port in _inputs(graph, id)]
    return {
        str(end): replace(_fit(source, end, type, port, upstream), replaces=occupied.get(end, "")) for end, port in ends
    }


def join(graph: Graph, source: End | str, target: End | str) -> Op:
    """Return the operation that draws an edge, delayed if it closes a loop; raise `GraphError` if it does not fit."""
    source, target = as_end(source), as_end(target)
    port = next((each for each in _inputs(graph, target.node) if each.name == target.port), None)
    if port is None:
        raise GraphError(f"{target.node} has no input {target.port!r}")
    edge = next((edge for edge in graph.edges if edge.target == target), None)
    if edge is not None:
        raise GraphError(f"{target} is already connected to {edge.source}; remove that edge, or {MERGE}")
    fit = _fit(source, target, _type_of(graph, source), port, _upstream(graph, source.node))
    if why := fit.why or ("" if fit.delay else _objection(graph, Edge(source, target))):
        raise GraphError(why)
    delay = None if not fit.delay else Delay(READY) if port.type.kind == "trigger" else Delay()
    return connect_op(source, target, delay)


def _fit(source: End, target: End, type: Type, port: Port, upstream: set[str]) -> Fit:
    why = misfit(type, port.type)
    if why is not None:
        return Fit(f"{source} does not fit {target}: {why}")
    # An edge to a node that leads here without a delay would be a cycle within a tick.
    if target.node != source.node and target.node not in upstream:
        return Fit()
    if not (port.optional or port.type.kind in ("any", "trigger")):
        return Fit(
            f"{source} → {target} closes a loop, so it needs a delay with an initial value, and there is no constant of "
            f"type {port.type}; put an OR in front of {target.node} that gets its first value from elsewhere"
        )
    return Fit(delay=True)


def _objection(graph: Graph, edge: Edge) -> str:
    """Return what type inference reports about the target only with this edge; "" if nothing."""
    known, node = _misfits(check(graph)), edge.target.node
    trial = graph.copy()
    trial.edges.append(edge)
    # A complaint about an input that is not connected yet is no reason against this edge.
    empty = {port.name for port in _inputs(trial, node)} - set(trial.into(node))
    new = [each for each in _misfits(check(trial)) if each not in known and each[0] == node and each[1] not in empty]
    return f"{edge} does not fit: {new[0][2]}" if new else ""


def _misfits(checked: Checked) -> list[tuple[str, str, str]]:
    findings = [each for each in guess_types(checked).findings if each.code in ("type", "fit")]
    return [(each.node, each.port, each.message) for each in findings]


def _type_of(graph: Graph, source: End) -> Type:
    if source.node not in graph.nodes:
        raise GraphError(f"there is no node {source.node!r}")
    # The type inside is only known after flattening; the check reports a misfit.
    if graph.nodes[source.node].type == SUBGRAPH:
        return ANY
    port = _declared(graph, source.node).output(source.port)
    if port is None:
        raise GraphError(f"{source.node} has no output {source.port!r}")
    return guess_types(check(graph)).types.get(End(source.node, port.name), port.type)


def _inputs(graph: Graph, id: str) -> tuple[Port, ...]:
    node = graph.nodes.get(id)
    if node is None:
        raise GraphError(f"there is no node {id!r}")
    if node.type != SUBGRAPH:
        return _declared(graph, id).inputs
    inner = graph.graphs.get(str(node.params.get("graph", "")))
    inlets = ports_of(inner)[0] if inner is not None else {}
    return tuple(Port(name, ANY, "An input of the sub-graph.", optional=True) for name in inlets)


def _declared(graph: Graph, id: str) -> NodeType:
    node = graph.nodes[id]
    declared = REGISTRY.get(node.type)
    return code_type(declared, id, node.params) if node.type == "Code" else declared


def _upstream(graph: Graph, id: str) -> set[str]:
    """Return all nodes that lead to this one without a delay; an edge to one of them closes a loop."""
    nodes: set[str] = set()
    todo = [id]
    while todo:
        current = todo.pop()
        for edge in graph.edges:
            if edge.target.node == current and edge.delay is None and edge.source.node not in nodes:
                nodes.add(edge.source.node)
                todo.append(edge.source.node)
    return nodes
