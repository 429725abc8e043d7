"""Sub-graphs: flatten them for a run, group nodes into one, and ungroup it again."""

from __future__ import annotations

from surefoot.errors import GraphError
from surefoot.graph.spec.model import Delay, Edge, End, Graph, Node, require_name
from surefoot.graph.spec.ops import Op, add_op, connect_op
from surefoot.graph.spec.passive import without_passive
from surefoot.graph.spec.text import to_json

SUBGRAPH, INLET, OUTLET = "SubGraph", "Inlet", "Outlet"
# Sub-graphs that contain others several times grow exponentially when flattened; 4,000 is twice what a file may have.
MOST = 4_000
DEEPEST = 8


def ports_of(graph: Graph) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return ({input: its Inlet nodes}, {output: its Outlet nodes}) of a sub-graph by port name."""
    ports: dict[str, dict[str, list[str]]] = {INLET: {}, OUTLET: {}}
    for id, node in sorted(graph.nodes.items()):
        if node.type in ports:
            ports[node.type].setdefault(str(node.params.get("port", id)), []).append(id)
    return ports[INLET], ports[OUTLET]


def flatten(graph: Graph) -> Graph:
    """Return the graph without sub-graphs, reroutes, bypassed and muted nodes: nodes inside are called outer__inner.

    A graph without any of them is returned itself.
    """
    if not any(node.type == SUBGRAPH for node in graph.nodes.values()):
        return without_passive(graph)
    flat, known = graph.copy(), dict(graph.graphs)
    flat.graphs = {}
    depth = 0
    while ids := [id for id, node in flat.nodes.items() if node.type == SUBGRAPH]:
        if depth > DEEPEST:
            raise GraphError(f"node {ids[0]}: sub-graphs are nested more than {DEEPEST} deep, or one contains itself")
        for id in ids:
            # Which input of a bypassed sub-graph belongs to which output is not known, so it is muted, too.
            if flat.nodes[id].mode:
                flat.remove(id)
                continue
            _expand(flat, id, known)
            if len(flat.nodes) > MOST:
                raise GraphError(f"the flattened sub-graphs have more than {MOST:,} nodes")
        depth += 1
    return without_passive(flat)


def _expand(flat: Graph, id: str, known: dict[str, Graph]) -> None:
    """Replace a SubGraph node by the nodes of its graph."""
    name = str(flat.nodes[id].params.get("graph", ""))
    inner = known.get(name)
    if inner is None:
        names = ", ".join(sorted(known)) or "none"
        raise GraphError(f"node {id}: there is no sub-graph {name[:40]!r}; the graph has {names}")
    # Definitions inside a sub-graph are visible to the graph that uses it; outer ones win.
    for nested, graph in inner.graphs.items():
        known.setdefault(nested, graph)
    names = {each: f"{id}__{each}" for each, node in inner.nodes.items() if node.type not in (INLET, OUTLET)}
    for each, new in names.items():
        if new in flat.nodes:
            raise GraphError(f"node {id}: flattening it creates a second {new!r}; rename one of them")
        flat.nodes[new] = inner.nodes[each].copy()
    inlets, outlets = ports_of(inner)
    edges = _inner_edges(inner, names)
    for edge in flat.edges:
        if id not in (edge.source.node, edge.target.node):
            edges.append(edge)
            continue
        for end, ports, side in ((edge.target, inlets, "input"), (edge.source, outlets, "output")):
            if end.node == id and end.port not in ports:
                names_of = ", ".join(ports) or "none"
                raise GraphError(f"node {id}: its sub-graph has no {side} {end.port!r}; it has {names_of}")
        replacements = _replacements(edge, id, inner, names)
        if not replacements and edge.source.node == id:
            raise GraphError(f"node {id}: nothing inside is connected to its output {edge.source.port!r}")
        for source, target, delays in replacements:
            if len(delays) > 1:
                raise GraphError(
                    f"node {id}: an edge through it has two delays; an edge is delayed by at most one tick"
                )
            edges.append(Edge(source, target, delays[0] if delays else None))
    flat.edges = edges
    del flat.nodes[id]
    flat.layout.pop(id, None)


def _inner_edges(inner: Graph, names: dict[str, str]) -> list[Edge]:
    """Return the edges between the renamed nodes of a sub-graph."""
    return [
        Edge(_renamed(edge.source, names), _renamed(edge.target, names), edge.delay)
        for edge in inner.edges
        if edge.source.node in names and edge.target.node in names
    ]


def _renamed(end: End, names: dict[str, str]) -> End:
    return End(names[end.node], end.port)


def _replacements(edge: Edge, id: str, inner: Graph, names: dict[str, str]) -> list[tuple[End, End, list[Delay]]]:
    """Return (source, target, delays) of the edges that replace one into or out of the SubGraph node `id`."""
    inlets, outlets = ports_of(inner)
    sources: list[tuple[End, Delay | None]] = [(edge.source, None)]
    if edge.source.node == id:
        ends = outlets.get(edge.source.port, ())[:1]
        inside = [each for each in inner.edges if each.target.node in ends and each.source.node in names]
        sources = [(_renamed(each.source, names), each.delay) for each in inside]
    targets: list[tuple[End, Delay | None]] = [(edge.target, None)]
    if edge.target.node == id:
        # One input may have several Inlet nodes, and each of them several readers.
        starts = inlets.get(edge.target.port, ())
        inside = [each for each in inner.edges if each.source.node in starts and each.target.node in names]
        targets = [(_renamed(each.target, names), each.delay) for each in inside]
    return [
        (source, target, [delay for delay in (edge.delay, first, second) if delay is not None])
        for source, first in sources
        for target, second in targets
    ]


def group(graph: Graph, ids: list[str], name: str) -> Op:
    """Return the operation that replaces nodes by one SubGraph node called `name` with the same edges."""
    inside = set(ids)
    require_name(name, "a sub-graph")
    if not inside or not inside <= set(graph.nodes) or name in graph.nodes:
        raise GraphError(
            f"cannot group {', '.join(ids) or 'nothing'} as {name!r}: a node is missing or the name is taken"
        )
    part = Graph(
        name, {id: graph.nodes[id] for id in ids}, layout={i: at for i, at in graph.layout.items() if i in inside}
    )
    connects: list[Op] = []
    outlets: dict[End, str] = {}
    for edge in sorted(graph.edges, key=lambda each: each.target):
        leaves, enters = edge.source.node in inside, edge.target.node in inside
        if leaves and enters:
            part.edges.append(edge)
        elif enters:
            port = f"{edge.target.node}_{edge.target.port}"
            part.nodes[f"in_{port}"] = Node(INLET, {"port": port})
            part.connect(End(f"in_{port}", "value"), edge.target)
            connects.append(connect_op(edge.source, End(name, port), edge.delay))
        elif leaves:
            # Several readers of one output share an Outlet.
            if edge.source not in outlets:
                port = outlets[edge.source] = f"{edge.source.node}_{edge.source.port}"
                part.nodes[f"out_{port}"] = Node(OUTLET, {"port": port})
                part.connect(edge.source, End(f"out_{port}", "value"))
            connects.append(connect_op(End(name, outlets[edge.source]), edge.target, edge.delay))
    # The new node is drawn in the middle of the nodes that it replaces.
    places = list(part.layout.values())
    at = {"at": [sum(x) / len(places) for x in zip(*places, strict=True)]} if places else {}
    return {
        "op": "batch",
        "ops": [
            *({"op": "remove", "id": id} for id in ids),
            {"op": "define", "name": name, "graph": to_json(part)},
            {"op": "add", "id": name, "type": SUBGRAPH, "params": {"graph": name}, **at},
            *connects,
        ],
    }


def within(op: Op, inside: str) -> Op:
    """Return an operation of `group` or `ungroup` for the sub-graph `inside`; definitions stay in the outer graph."""
    ops: list[Op] = op["ops"]
    moved = [each if each["op"] == "define" else {"op": "within", "graph": inside, "do": each} for each in ops]
    return {"op": "batch", "ops": moved}


def ungroup(graph: Graph, id: str, outer: Graph | None = None) -> Op:
    """Return the operation that replaces a SubGraph node by its nodes; `outer` is the graph that `graph` is a part of."""
    node, outer = graph.nodes.get(id), outer or graph
    known = {**outer.graphs, **graph.graphs}
    inner = known.get(str(node.params.get("graph", ""))) if node is not None and node.type == SUBGRAPH else None
    if node is None or inner is None:
        raise GraphError(f"{id!r} is not a sub-graph, so it cannot be ungrouped")
    used = set(graph.nodes) - {id}
    names: dict[str, str] = {}
    for each, inside in inner.nodes.items():
        if inside.type not in (INLET, OUTLET):
            names[each] = next(
                new for k in range(1, len(used) + 2) if (new := f"{each}_{k}" if k > 1 else each) not in used
            )
    ops: list[Op] = [
        {"op": "define", "name": name, "graph": to_json(each)}
        for name, each in inner.graphs.items()
        if name not in known
    ]
    ops.append({"op": "remove", "id": id})
    for each, new in names.items():
        at = inner.layout.get(each)
        ops.append(add_op(new, inner.nodes[each]) | ({} if at is None else {"at": list(at)}))
    ops += [connect_op(edge.source, edge.target, edge.delay) for edge in _inner_edges(inner, names)]
    for edge in graph.edges:
        if id in (edge.source.node, edge.target.node):
            ops += [
                connect_op(source, target, delays[0] if delays else None)
                for source, target, delays in _replacements(edge, id, inner, names)
            ]
    uses = sum(
        each.params.get("graph") == node.params["graph"]
        for part in (outer, *outer.graphs.values())
        for each in part.nodes.values()
        if each.type == SUBGRAPH
    )
    # The definition is dropped with its last use.
    if uses == 1:
        ops.append({"op": "define", "name": str(node.params["graph"]), "graph": None})
    return {"op": "batch", "ops": ops}
