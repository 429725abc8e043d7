"""Changes to a graph as JSON operations; each has an inverse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surefoot.errors import GraphError
from surefoot.graph.nodes import REGISTRY
from surefoot.graph.spec.model import ABSENT, Delay, End, Graph, Node, require_name
from surefoot.graph.spec.params import find_param, params_to_json, read_params, read_ranges
from surefoot.graph.spec.text import (
    FORMAT,
    VERSION,
    delay_to_json,
    frame_to_json,
    from_json,
    read_frame,
    read_mode,
    read_run,
    to_json,
)

Op = dict[str, Any]


def apply(graph: Graph, op: Mapping[str, Any]) -> Op:
    """Change the graph and return the inverse operation; an operation that fails changes nothing."""
    kind = op.get("op")
    if kind not in _OPS:
        raise GraphError(f"there is no operation {str(kind)[:40]!r}; use one of {', '.join(_OPS)}")
    try:
        return _OPS[kind](graph, op)
    except (KeyError, TypeError) as why:
        raise GraphError(f"the operation {kind} is incomplete: {why}") from why


def _node(graph: Graph, op: Mapping[str, Any]) -> Node:
    node = graph.nodes.get(op["id"])
    if node is None:
        raise GraphError(f"there is no node {str(op['id'])[:40]!r} for the operation {op['op']}")
    return node


def graph_of(content: Mapping[str, Any]) -> Graph:
    """Read a graph without header, as operations hold it."""
    return from_json({"format": FORMAT, "version": VERSION, **content})


def _add(graph: Graph, op: Mapping[str, Any]) -> Op:
    id, at, declared = op["id"], op.get("at"), REGISTRY.get(op["type"])
    params, ranges = op.get("params", {}), op.get("ranges", {})
    node = Node(declared.name, read_params(declared, params, who=id), read_ranges(declared, ranges, who=id))
    node.mode = read_mode(op.get("mode", ""), id)
    graph.add(id, node, None if at is None else (at[0], at[1]))
    return {"op": "remove", "id": id}


def add_op(id: str, node: Node) -> Op:
    """Return the operation that adds such a node."""
    op: Op = {"op": "add", "id": id, "type": node.type, "params": shown_params(node)}
    return op | ({"ranges": dict(node.ranges)} if node.ranges else {}) | ({"mode": node.mode} if node.mode else {})


def shown_params(node: Node) -> dict[str, Any]:
    """Return the parameters that are set on a node as JSON values."""
    return params_to_json(REGISTRY.find(node.type), node.params)


def _remove(graph: Graph, op: Mapping[str, Any]) -> Op:
    node, id = _node(graph, op), op["id"]
    # Read before the removal, which drops position and edges.
    at = graph.layout.get(id)
    edges = [edge for edge in graph.edges if id in (edge.source.node, edge.target.node)]
    graph.remove(id)
    add = add_op(id, node) | ({} if at is None else {"at": list(at)})
    return {"op": "batch", "ops": [add, *(connect_op(edge.source, edge.target, edge.delay) for edge in edges)]}


def connect_op(source: End, target: End, delay: Delay | None) -> Op:
    """Return the operation that adds an edge."""
    return {"op": "connect", "from": str(source), "to": str(target)} | delay_to_json(delay)


def _connect(graph: Graph, op: Mapping[str, Any]) -> Op:
    delay = None if op.get("delay") is None else Delay(op["delay"].get("initial", ABSENT))
    return {"op": "disconnect", "to": str(graph.connect(op["from"], op["to"], delay).target)}


def _disconnect(graph: Graph, op: Mapping[str, Any]) -> Op:
    edge = graph.disconnect(op["to"])
    return connect_op(edge.source, edge.target, edge.delay)


def _set(graph: Graph, op: Mapping[str, Any]) -> Op:
    """Set `params` and return the names in `unset` to their defaults."""
    node = _node(graph, op)
    declared, before = REGISTRY.get(node.type), shown_params(node)
    values = read_params(declared, op.get("params", {}), who=op["id"])
    # Logs of earlier versions hold older names.
    unset = {find_param(declared, name, who=op["id"]).name for name in op.get("unset", ())}
    changed = set(values) | unset
    node.params = {name: value for name, value in {**node.params, **values}.items() if name not in unset}
    inverse: Op = {"op": "set", "id": op["id"], "params": {name: before[name] for name in before if name in changed}}
    added = sorted(changed - set(before))
    return inverse | ({"unset": added} if added else {})


def _mode(graph: Graph, op: Mapping[str, Any]) -> Op:
    """Mute or bypass a node, or make it active again."""
    node, mode = _node(graph, op), read_mode(op["mode"], str(op["id"]))
    before, node.mode = node.mode, mode
    return {"op": "mode", "id": op["id"], "mode": before}


def _frame(graph: Graph, op: Mapping[str, Any]) -> Op:
    """Set a comment, or remove it if `frame` is None."""
    id = require_name(op["id"], "a comment")
    before = graph.frames.get(id)
    if op["frame"] is None:
        graph.frames.pop(id, None)
    else:
        graph.frames[id] = read_frame(op["frame"])
    return {"op": "frame", "id": id, "frame": None if before is None else frame_to_json(before)}


def _move(graph: Graph, op: Mapping[str, Any]) -> Op:
    _node(graph, op)
    id, before = op["id"], graph.layout.get(op["id"])
    if op["at"] is None:
        graph.layout.pop(id, None)
    else:
        graph.layout[id] = (float(op["at"][0]), float(op["at"][1]))
    return {"op": "move", "id": id, "at": None if before is None else list(before)}


def _rename(graph: Graph, op: Mapping[str, Any]) -> Op:
    _node(graph, op)
    id, to = op["id"], require_name(op["to"], "a node")
    if to in graph.nodes:
        raise GraphError(f"{id!r} cannot be renamed to {to!r}: the graph has a node of that name")

    def named(end: End) -> End:
        return End(to, end.port) if end.node == id else end

    # Rebuilt in order, so that a rename does not move the node in listings.
    graph.nodes = {to if name == id else name: node for name, node in graph.nodes.items()}
    graph.layout = {to if name == id else name: at for name, at in graph.layout.items()}
    graph.edges = [type(edge)(named(edge.source), named(edge.target), edge.delay) for edge in graph.edges]
    return {"op": "rename", "id": to, "to": id}


def _run(graph: Graph, op: Mapping[str, Any]) -> Op:
    before = dict(to_json(graph)["run"])
    graph.run = read_run(before | dict(op["settings"]))
    return {"op": "run", "settings": {name: before[name] for name in op["settings"]}}


def _title(graph: Graph, op: Mapping[str, Any]) -> Op:
    before: Op = {"op": "title", "name": graph.name, "about": graph.about}
    graph.name, graph.about = str(op.get("name", graph.name)), str(op.get("about", graph.about))
    return before


def _define(graph: Graph, op: Mapping[str, Any]) -> Op:
    """Set a sub-graph, or remove it if `graph` is None."""
    name = require_name(op["name"], "a sub-graph")
    before = graph.graphs.get(name)
    if op["graph"] is None:
        graph.graphs.pop(name, None)
    else:
        graph.graphs[name] = graph_of(op["graph"])
    return {"op": "define", "name": name, "graph": None if before is None else to_json(before)}


def _within(graph: Graph, op: Mapping[str, Any]) -> Op:
    """Apply an operation inside a sub-graph."""
    inner, names = graph.graphs.get(op["graph"]), ", ".join(graph.graphs) or "none"
    if inner is None:
        raise GraphError(f"there is no sub-graph {str(op['graph'])[:40]!r}; the graph has {names}")
    return {"op": "within", "graph": op["graph"], "do": apply(inner, op["do"])}


def _replace(graph: Graph, op: Mapping[str, Any]) -> Op:
    """Replace the content of the graph, for instance after its file was changed by another program."""
    before, new = to_json(graph), graph_of(op["graph"])
    # In place: the editor and the history hold references to this graph.
    for name in ("name", "nodes", "edges", "run", "layout", "graphs", "about", "frames"):
        setattr(graph, name, getattr(new, name))
    return {"op": "replace", "graph": before}


def _batch(graph: Graph, op: Mapping[str, Any]) -> Op:
    """Apply several operations: all of them or none."""
    undo: list[Op] = []
    try:
        for each in op["ops"]:
            undo.append(apply(graph, each))  # noqa: PERF401  the handler needs those that were applied before the failure
    except GraphError:
        for each in reversed(undo):
            apply(graph, each)
        raise
    return {"op": "batch", "ops": undo[::-1]}


_OPS = {
    "add": _add,
    "remove": _remove,
    "connect": _connect,
    "disconnect": _disconnect,
    "set": _set,
    "mode": _mode,
    "frame": _frame,
    "move": _move,
    "rename": _rename,
    "run": _run,
    "title": _title,
    "define": _define,
    "within": _within,
    "replace": _replace,
    "batch": _batch,
}
