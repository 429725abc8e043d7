"""Several nodes made one, and one made several again."""

from __future__ import annotations

from surefoot.errors import GraphError
from surefoot.graph.spec.flatten import SUBGRAPH, ports_of
from surefoot.graph.spec.model import Delay, Edge, End, Graph, Node, require_name
from surefoot.graph.spec.ops import Op, connection, shown_params
from surefoot.graph.spec.text import to_json


def group(graph: Graph, ids: list[str], name: str) -> Op:
    """The operation that makes one node of several: a SubGraph called `name`, wired as they were."""
    inside = set(ids)
    require_name(name, "a sub-graph")
    if not inside or not inside <= set(graph.nodes) or name in graph.nodes:
        raise GraphError(f"{name!r} cannot be made of {', '.join(ids) or 'nothing'}")
    part = Graph(
        name, {id: graph.nodes[id] for id in ids}, layout={i: at for i, at in graph.layout.items() if i in inside}
    )
    ops: list[Op] = []
    outlets: dict[End, str] = {}
    for edge in sorted(graph.edges, key=lambda each: each.target):
        here, there = edge.source.node in inside, edge.target.node in inside
        if here and there:
            part.edges.append(edge)
        elif there:
            port = f"{edge.target.node}_{edge.target.port}"
            part.nodes[f"in_{port}"] = Node("Inlet", {"port": port})
            part.connect(End(f"in_{port}", "value"), edge.target)
            ops.append(connection(str(edge.source), f"{name}.{port}", edge.delay))
        elif here:
            port = outlets.get(edge.source)
            if port is None:
                port = outlets[edge.source] = f"{edge.source.node}_{edge.source.port}"
                part.nodes[f"out_{port}"] = Node("Outlet", {"port": port})
                part.connect(edge.source, End(f"out_{port}", "value"))
            ops.append(connection(f"{name}.{port}", str(edge.target), edge.delay))
    made: list[Op] = [{"op": "remove", "id": id} for id in ids]
    made += [{"op": "define", "name": name, "graph": to_json(part)}]
    places = list(part.layout.values())
    at = {"at": [sum(x) / len(places) for x in zip(*places, strict=True)]} if places else {}
    made += [{"op": "add", "id": name, "type": "SubGraph", "params": {"graph": name}, **at}]
    return {"op": "batch", "ops": [*made, *ops]}


def ungroup(graph: Graph, id: str) -> Op:
    """The operation that puts what is inside a SubGraph node back where that stands."""
    node = graph.nodes.get(id)
    inner = graph.graphs.get(str(node.params.get("graph", ""))) if node is not None and node.type == SUBGRAPH else None
    if node is None or inner is None:
        raise GraphError(f"{id!r} is not a sub-graph, so there is nothing to take out of it")
    inlets, outlets = ports_of(inner)
    ports = {each for ids in (*inlets.values(), *outlets.values()) for each in ids}
    names = {each: _free(each, graph, id) for each in inner.nodes if each not in ports}
    ops: list[Op] = [{"op": "remove", "id": id}]
    for each, new in names.items():
        add: Op = {"op": "add", "id": new, "type": inner.nodes[each].type, "params": shown_params(inner.nodes[each])}
        if (at := inner.layout.get(each)) is not None:
            add["at"] = list(at)
        ops.append(add)
    ops += [
        connection(_named(edge.source, names), _named(edge.target, names), edge.delay)
        for edge in inner.edges
        if edge.source.node in names and edge.target.node in names
    ]
    for edge in graph.edges:
        ops += [connection(a, b, edge.delay or own) for a, b, own in _through(edge, id, inner, names)]
    nested: list[Op] = [
        {"op": "define", "name": name, "graph": to_json(each)}
        for name, each in inner.graphs.items()
        if name not in graph.graphs
    ]
    used = sum(
        each.params.get("graph") == node.params["graph"] for each in graph.nodes.values() if each.type == SUBGRAPH
    )
    gone: list[Op] = [{"op": "define", "name": str(node.params["graph"]), "graph": None}] if used == 1 else []
    return {"op": "batch", "ops": [*nested, *ops, *gone]}


def _free(name: str, graph: Graph, without: str) -> str:
    taken, number, found = set(graph.nodes) - {without}, 2, name
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    return found


def _named(end: End, names: dict[str, str]) -> str:
    return f"{names[end.node]}.{end.port}"


def _through(edge: Edge, id: str, inner: Graph, names: dict[str, str]) -> list[tuple[str, str, Delay | None]]:
    """The edges that stand for one that reached into the sub-graph or out of it."""
    if id not in (edge.source.node, edge.target.node):
        return []
    inlets, outlets = ports_of(inner)
    sources: list[tuple[str, Delay | None]] = [(str(edge.source), None)]
    if edge.source.node == id:
        into = [each for each in inner.edges if each.target.node in outlets.get(edge.source.port, ())]
        sources = [(_named(each.source, names), each.delay) for each in into if each.source.node in names]
    targets: list[tuple[str, Delay | None]] = [(str(edge.target), None)]
    if edge.target.node == id:
        out = [each for each in inner.edges if each.source.node in inlets.get(edge.target.port, ())]
        targets = [(_named(each.target, names), each.delay) for each in out if each.target.node in names]
    return [(source, target, first or second) for source, first in sources for target, second in targets]
