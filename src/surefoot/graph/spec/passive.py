"""Reroutes, bypassed and muted nodes: edges replace them before a graph is checked and run."""

from __future__ import annotations

from surefoot.errors import GraphError
from surefoot.graph.nodes import REGISTRY
from surefoot.graph.spec.model import Edge, End, Graph

REROUTE = "Reroute"


def without_passive(graph: Graph) -> Graph:
    """Return the graph without reroutes, bypassed and muted nodes; a graph without any is returned itself.

    A bypassed node passes on the first connected input that has the kind of the output; behind a muted node, and behind a
    bypassed one without such an input, nothing is connected.
    """
    passive = {id: node for id, node in graph.nodes.items() if node.mode or node.type == REROUTE}
    if not passive:
        return graph
    into = {edge.target: edge for edge in graph.edges}

    def origin(edge: Edge, passed: frozenset[str] = frozenset()) -> Edge | None:
        """Return the edge from the node that computes the value; None if there is no such node."""
        id = edge.source.node
        if id not in passive:
            return edge
        before = None if passive[id].mode == "mute" or id in passed else into.get(_entrance(graph, edge.source, into))
        first = None if before is None else origin(before, passed | {id})
        if first is None:
            return None
        if first.delay is not None and edge.delay is not None:
            raise GraphError(f"{edge}: an edge through {id} has two delays; an edge is delayed by at most one tick")
        return Edge(first.source, edge.target, first.delay or edge.delay)

    active = graph.copy()
    active.nodes = {id: node for id, node in active.nodes.items() if id not in passive}
    active.layout = {id: at for id, at in active.layout.items() if id not in passive}
    found = (origin(edge) for edge in graph.edges if edge.target.node not in passive)
    active.edges = [edge for edge in found if edge is not None]
    return active


def _entrance(graph: Graph, output: End, into: dict[End, Edge]) -> End:
    """Return the input that a bypassed node passes on to one of its outputs; the output itself if there is none."""
    declared = REGISTRY.find(graph.nodes[output.node].type)
    port = None if declared is None else declared.output(output.port)
    if declared is None or port is None:
        return output
    fitting = [
        each
        for each in declared.inputs
        if "any" in (each.type.kind, port.type.kind) or each.type.kind == port.type.kind
    ]
    ends = [End(output.node, each.name) for each in fitting]
    return next((end for end in ends if end in into), output)
