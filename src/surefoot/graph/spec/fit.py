"""May this output go into that input? Asked of graphs that are not finished yet, before an edge is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from surefoot.errors import GraphError
from surefoot.graph.spec.check import check, guess_types
from surefoot.graph.spec.checked import Checked, GraphFinding
from surefoot.graph.spec.declare import NodeType, Port
from surefoot.graph.spec.flatten import SUBGRAPH, ports_of
from surefoot.graph.spec.model import Edge, End, Graph, as_end
from surefoot.graph.spec.ops import Op
from surefoot.graph.spec.types import ANY, Type, misfit

READY = "ready"
"""What a delayed trigger says in the first tick."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether an edge may be drawn; if not, why, and if it would close a loop, with a delay."""

    why: str = ""
    delay: bool = False

    def to_json(self) -> dict[str, Any]:
        return {"ok": not self.why, "why": self.why, "delay": self.delay}


def fits(graph: Graph, source: End | str) -> dict[str, Fit]:
    """{input: may it be connected to this output}, of all inputs in the graph."""
    source = as_end(source)
    given, before = _type_of(graph, source), _reaches(graph, source.node)
    return {
        str(End(id, port.name)): _fit(graph, source, End(id, port.name), given, port, before)
        for id in graph.nodes
        for port in _inputs(graph, id)
    }


def join(graph: Graph, source: End | str, target: End | str) -> Op:
    """The operation that draws this edge, with a delay where it closes a loop; raises the reason why it may not be."""
    source, target = as_end(source), as_end(target)
    port = next((each for each in _inputs(graph, target.node) if each.name == target.port), None)
    if port is None:
        raise GraphError(f"{target.node} has no input {target.port!r}")
    given = _type_of(graph, source)
    fit = _fit(graph, source, target, given, port, _reaches(graph, source.node))
    if why := fit.why or ("" if fit.delay else _inferred(graph, Edge(source, target))):
        raise GraphError(why)
    op: Op = {"op": "connect", "from": str(source), "to": str(target)}
    if fit.delay:
        op["delay"] = {"initial": READY} if port.type.kind == "trigger" else {}
    return op


def _fit(graph: Graph, source: End, target: End, given: Type, port: Port, before: set[str]) -> Fit:
    taken = next((edge for edge in graph.edges if edge.target == target), None)
    if taken is not None:
        return Fit(f"{target} is connected already, from {taken.source}; remove that edge, or merge two with an OR")
    why = misfit(given, port.type)
    if why is not None:
        return Fit(f"{source} does not fit {target}: {why}")
    loop = target.node == source.node or target.node in before
    if not loop:
        return Fit()
    if not (port.optional or port.type.kind in ("any", "trigger")):
        return Fit(
            f"{source} → {target} closes a loop, so it needs a delay with a first value, and a delay cannot make up "
            f"{port.type}; put an OR in front of {target.node} that has a first value from elsewhere"
        )
    return Fit(delay=True)


def _inferred(graph: Graph, edge: Edge) -> str:
    """What inference would say against this edge that it does not say without; "" if nothing.

    That another input waits to be connected is no reason against this one.
    """
    known = _misfits(check(graph))
    tried = graph.copy()
    tried.edges.append(edge)
    node = edge.target.node
    empty = {port.name for port in _inputs(tried, node)} - set(tried.into(node))
    new = [each for each in _misfits(check(tried)) if each not in known and each[0] == node and each[1] not in empty]
    return f"{edge} does not fit: {new[0][2]}" if new else ""


def _misfits(checked: Checked) -> list[tuple[str, str, str]]:
    found: list[GraphFinding] = [each for each in guess_types(checked).findings if each.code in ("type", "fit")]
    return [(each.node, each.port, each.message) for each in found]


def _type_of(graph: Graph, source: End) -> Type:
    if source.node not in graph.nodes:
        raise GraphError(f"there is no node {source.node!r}")
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
    from surefoot.graph.nodes import REGISTRY
    from surefoot.graph.spec.code import declared_as

    node = graph.nodes[id]
    return declared_as(id, node.params) if node.type == "Code" else REGISTRY.get(node.type)


def _reaches(graph: Graph, id: str) -> set[str]:
    """All nodes from which this one is reached within a tick; an edge to one of them closes a loop."""
    found: set[str] = set()
    todo = [id]
    while todo:
        here = todo.pop()
        for edge in graph.edges:
            if edge.target.node == here and edge.delay is None and edge.source.node not in found:
                found.add(edge.source.node)
                todo.append(edge.source.node)
    return found
