"""Sub-graphs taken apart: each node of type SubGraph gives way to the nodes inside, called outer__inner."""

from __future__ import annotations

from surefoot.errors import GraphError
from surefoot.graph.spec.model import Delay, Edge, End, Graph, Node

SUBGRAPH = "SubGraph"
INLET, OUTLET = "Inlet", "Outlet"
MOST = 4_000


def flatten(graph: Graph) -> Graph:
    """The same without sub-graphs; itself where there are none."""
    if not any(node.type == SUBGRAPH for node in graph.nodes.values()):
        return graph
    flat = graph.copy()
    flat.graphs = {}
    _expand(flat, graph.graphs, depth=0)
    return flat


def _expand(flat: Graph, known: dict[str, Graph], *, depth: int) -> None:
    while True:
        names = [id for id, node in flat.nodes.items() if node.type == SUBGRAPH]
        if not names:
            return
        if depth > 8:
            raise GraphError(f"node {names[0]}: sub-graphs are nested more than 8 deep, or one contains itself")
        for id in names:
            _replace(flat, id, known)
            if len(flat.nodes) > MOST:
                raise GraphError(f"taken apart, the sub-graphs come to more than {MOST:,} nodes")
        depth += 1


def _replace(flat: Graph, id: str, known: dict[str, Graph]) -> None:
    name = str(flat.nodes[id].params.get("graph", ""))
    inner = known.get(name)
    if inner is None:
        there = ", ".join(sorted(known)) or "none"
        raise GraphError(f"node {id}: there is no sub-graph {name[:40]!r}; there are {there}")
    for nested, graph in inner.graphs.items():
        known.setdefault(nested, graph)
    inlets, outlets = ports_of(inner)
    inside = {each: f"{id}__{each}" for each, node in inner.nodes.items() if node.type not in (INLET, OUTLET)}
    for each, new in inside.items():
        if new in flat.nodes:
            raise GraphError(f"node {id}: taking it apart makes a second {new!r}; rename one of them")
        flat.nodes[new] = Node(inner.nodes[each].type, dict(inner.nodes[each].params))
    for edge in inner.edges:
        if edge.source.node in inside and edge.target.node in inside:
            flat.edges.append(
                Edge(
                    End(inside[edge.source.node], edge.source.port),
                    End(inside[edge.target.node], edge.target.port),
                    edge.delay,
                )
            )
    rewired: list[Edge] = []
    for edge in flat.edges:
        if edge.target.node != id:
            rewired.append(edge)
            continue
        port = edge.target.port
        if port not in inlets:
            raise GraphError(f"node {id}: its sub-graph has no input {port!r}; it has {', '.join(inlets) or 'none'}")
        for inlet in inlets[port]:
            rewired += _through(edge, inner, inlet, inside, id)
    flat.edges = [
        _from_outlet(edge, inner, outlets, inside, id) if edge.source.node == id else edge for edge in rewired
    ]
    del flat.nodes[id]
    flat.layout.pop(id, None)


def ports_of(graph: Graph) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """({input: its Inlet nodes}, {output: its Outlet nodes}) of a sub-graph, by the ports' names."""
    found: dict[str, dict[str, list[str]]] = {INLET: {}, OUTLET: {}}
    for id, node in sorted(graph.nodes.items()):
        if node.type in found:
            found[node.type].setdefault(str(node.params.get("port", id)), []).append(id)
    return found[INLET], found[OUTLET]


def _through(edge: Edge, inner: Graph, inlet: str, inside: dict[str, str], id: str) -> list[Edge]:
    """An edge into a sub-graph becomes one to every reader of that inlet."""
    found = [each for each in inner.edges if each.source.node == inlet]
    return [
        Edge(edge.source, End(inside[each.target.node], each.target.port), _one(edge.delay, each.delay, id))
        for each in found
        if each.target.node in inside
    ]


def _from_outlet(edge: Edge, inner: Graph, outlets: dict[str, list[str]], inside: dict[str, str], id: str) -> Edge:
    port = edge.source.port
    if port not in outlets:
        raise GraphError(f"node {id}: its sub-graph has no output {port!r}; it has {', '.join(outlets) or 'none'}")
    source = next((each for each in inner.edges if each.target.node == outlets[port][0]), None)
    if source is None or source.source.node not in inside:
        raise GraphError(f"node {id}: nothing inside is connected to its output {port!r}")
    return Edge(End(inside[source.source.node], source.source.port), edge.target, _one(source.delay, edge.delay, id))


def _one(first: Delay | None, second: Delay | None, id: str) -> Delay | None:
    if first is not None and second is not None:
        raise GraphError(f"node {id}: an edge through it has two delays; an edge waits at most one tick")
    return first or second
