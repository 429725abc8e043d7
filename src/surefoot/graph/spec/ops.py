"""Changes to a graph as a log of operations: each knows its undoing, so that history, autosave and undo are one thing."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from surefoot.errors import GraphError
from surefoot.graph.spec.model import ABSENT, Delay, End, Graph, Node, require_name
from surefoot.graph.spec.params import params_to_json, read_params, read_ranges
from surefoot.graph.spec.text import canonical, from_json, parse_json, to_json

Op = dict[str, Any]


def apply(graph: Graph, op: Mapping[str, Any]) -> Op:
    """Make a change; returns the operation that takes it back. A change that cannot be made leaves all as it was."""
    kind = op.get("op")
    if kind not in _OPS:
        raise GraphError(f"there is no operation {str(kind)[:40]!r}; there are {', '.join(_OPS)}")
    try:
        return _OPS[kind](graph, op)
    except (KeyError, TypeError) as why:
        raise GraphError(f"the operation {kind} lacks something: {why}") from why


def _add(graph: Graph, op: Mapping[str, Any]) -> Op:
    from surefoot.graph.nodes import REGISTRY

    id = op["id"]
    at = op.get("at")
    declared = REGISTRY.get(op["type"])
    params, ranges = op.get("params", {}), op.get("ranges", {})
    node = Node(declared.name, read_params(declared, params, who=id), read_ranges(declared, ranges, who=id))
    graph.add(id, node, None if at is None else (at[0], at[1]))
    return {"op": "remove", "id": id}


def adding(id: str, node: Node) -> Op:
    """The operation that puts such a node in."""
    told: Op = {"op": "add", "id": id, "type": node.type, "params": shown_params(node)}
    return told | ({"ranges": dict(node.ranges)} if node.ranges else {})


def shown_params(node: Node) -> dict[str, Any]:
    """What is set on a node, as JSON values."""
    from surefoot.graph.nodes import REGISTRY

    return params_to_json(REGISTRY.find(node.type), node.params)


def _remove(graph: Graph, op: Mapping[str, Any]) -> Op:
    id = op["id"]
    if id not in graph.nodes:
        raise GraphError(f"there is no node {str(id)[:40]!r} to remove")
    node, at = graph.nodes[id], graph.layout.get(id)
    edges = [edge for edge in graph.edges if id in (edge.source.node, edge.target.node)]
    graph.remove(id)
    add = adding(id, node)
    if at is not None:
        add["at"] = list(at)
    back = [connection(str(edge.source), str(edge.target), edge.delay) for edge in edges]
    return {"op": "batch", "ops": [add, *back]}


def connection(source: str, target: str, delay: Delay | None) -> Op:
    """The operation that draws an edge."""
    told: Op = {"op": "connect", "from": source, "to": target}
    if delay is not None:
        told["delay"] = {} if delay.initial is ABSENT else {"initial": delay.initial}
    return told


def _connect(graph: Graph, op: Mapping[str, Any]) -> Op:
    delay = op.get("delay")
    made = None if delay is None else Delay(delay["initial"]) if "initial" in delay else Delay(ABSENT)
    edge = graph.connect(op["from"], op["to"], made)
    return {"op": "disconnect", "to": str(edge.target)}


def _disconnect(graph: Graph, op: Mapping[str, Any]) -> Op:
    edge = graph.disconnect(op["to"])
    return connection(str(edge.source), str(edge.target), edge.delay)


def _set(graph: Graph, op: Mapping[str, Any]) -> Op:
    """`params` are set, the names in `unset` go back to their defaults."""
    from surefoot.graph.nodes import REGISTRY

    node = graph.nodes.get(op["id"])
    if node is None:
        raise GraphError(f"there is no node {str(op['id'])[:40]!r} to set anything on")
    before = shown_params(node)
    read = read_params(REGISTRY.get(node.type), op.get("params", {}), who=op["id"])
    gone = set(op.get("unset", ()))
    touched = set(read) | gone
    node.params = {name: value for name, value in {**node.params, **read}.items() if name not in gone}
    back: Op = {"op": "set", "id": op["id"], "params": {name: before[name] for name in before if name in touched}}
    fresh = sorted(touched - set(before))
    return back | ({"unset": fresh} if fresh else {})


def _move(graph: Graph, op: Mapping[str, Any]) -> Op:
    id, before = op["id"], graph.layout.get(op["id"])
    if id not in graph.nodes:
        raise GraphError(f"there is no node {str(id)[:40]!r} to move")
    if op["at"] is None:
        graph.layout.pop(id, None)
    else:
        graph.layout[id] = (float(op["at"][0]), float(op["at"][1]))
    return {"op": "move", "id": id, "at": None if before is None else list(before)}


def _rename(graph: Graph, op: Mapping[str, Any]) -> Op:
    id, to = op["id"], require_name(op["to"], "a node")
    if id not in graph.nodes or to in graph.nodes:
        raise GraphError(f"{str(id)[:40]!r} cannot be called {to!r}: it is not there, or that name is taken")

    def named(end: End) -> End:
        return End(to, end.port) if end.node == id else end

    graph.nodes = {to if name == id else name: node for name, node in graph.nodes.items()}
    graph.layout = {to if name == id else name: at for name, at in graph.layout.items()}
    graph.edges = [type(edge)(named(edge.source), named(edge.target), edge.delay) for edge in graph.edges]
    return {"op": "rename", "id": to, "to": id}


def _run(graph: Graph, op: Mapping[str, Any]) -> Op:
    before = dict(to_json(graph)["run"])
    graph.run = from_json({"format": "surefoot.graph", "version": 1, "run": before | dict(op["settings"])}).run
    return {"op": "run", "settings": {name: before[name] for name in op["settings"]}}


def _title(graph: Graph, op: Mapping[str, Any]) -> Op:
    before: Op = {"op": "title", "name": graph.name, "about": graph.about}
    graph.name, graph.about = str(op.get("name", graph.name)), str(op.get("about", graph.about))
    return before


def _define(graph: Graph, op: Mapping[str, Any]) -> Op:
    """Set or (None) drop a sub-graph."""
    name = require_name(op["name"], "a sub-graph")
    before = graph.graphs.get(name)
    if op["graph"] is None:
        graph.graphs.pop(name, None)
    else:
        graph.graphs[name] = from_json({"format": "surefoot.graph", "version": 1, **op["graph"]})
    return {"op": "define", "name": name, "graph": None if before is None else to_json(before)}


def _within(graph: Graph, op: Mapping[str, Any]) -> Op:
    """A change inside a sub-graph."""
    inner = graph.graphs.get(op["graph"])
    if inner is None:
        raise GraphError(
            f"there is no sub-graph {str(op['graph'])[:40]!r}; there are {', '.join(graph.graphs) or 'none'}"
        )
    return {"op": "within", "graph": op["graph"], "do": apply(inner, op["do"])}


def _replace(graph: Graph, op: Mapping[str, Any]) -> Op:
    """Another graph in its place, as when its file was changed by somebody else."""
    before = to_json(graph)
    new = from_json({"format": "surefoot.graph", "version": 1, **op["graph"]})
    for name in ("name", "nodes", "edges", "run", "layout", "graphs", "about"):
        setattr(graph, name, getattr(new, name))
    return {"op": "replace", "graph": before}


def _batch(graph: Graph, op: Mapping[str, Any]) -> Op:
    """Several changes as one: all of them, or none."""
    undo: list[Op] = []
    try:
        for each in op["ops"]:
            undo.append(apply(graph, each))  # noqa: PERF401  what was done so far must be known when one fails
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
    "move": _move,
    "rename": _rename,
    "run": _run,
    "title": _title,
    "define": _define,
    "within": _within,
    "replace": _replace,
    "batch": _batch,
}


class History:
    """A graph with its past: `do`, `undo`, `redo`; with a file, each change is on disk before `do` returns."""

    def __init__(self, graph: Graph | None = None, file: Path | str | None = None) -> None:
        self.graph = graph or Graph()
        self.was: set[str] = set()
        """What the graph ever was, by the digest of its text, as far as the file tells."""
        self.done: list[tuple[Op, Op]] = []
        """(what was done, what takes it back)"""
        self.undone: list[tuple[Op, Op]] = []
        self.file = None if file is None else Path(file)
        if self.file is not None and self.file.exists():
            self._replay()
        elif self.file is not None:
            self._write({"op": "open", "graph": to_json(self.graph)})

    def do(self, op: Op) -> None:
        """Make a change; what was undone before is forgotten."""
        back = apply(self.graph, op)
        self.done.append((op, back))
        self.undone = []
        self._write(op)

    def undo(self) -> bool:
        """Take the last change back; False if there is none."""
        if not self.done:
            return False
        op, back = self.done.pop()
        apply(self.graph, back)
        self.undone.append((op, back))
        self._write({"op": "undo"})
        return True

    def redo(self) -> bool:
        """Make the change again that was taken back last; False if there is none."""
        if not self.undone:
            return False
        op, _ = self.undone.pop()
        self.done.append((op, apply(self.graph, op)))
        self._write({"op": "redo"})
        return True

    def _write(self, op: Op) -> None:
        if self.file is None:
            return
        with open(self.file, "a", encoding="utf-8") as file:
            line: Op = {**op, "t": round(time.time(), 3)}
            file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _replay(self) -> None:
        """From the log; a torn last line is left out."""
        assert self.file is not None
        path, self.file = self.file, None
        lines = path.read_text(encoding="utf-8").split("\n")
        for number, line in enumerate(lines[:-1], 1):
            try:
                self._replay_one(parse_json(line))
                self.was.add(digest(self.graph))
            except GraphError as why:
                raise GraphError(f"{path}, line {number}: {why}") from why
        self.file = path
        if lines[-1]:
            keep = sum(len(line.encode()) + 1 for line in lines[:-1])
            with open(path, "r+b") as file:
                file.truncate(keep)

    def _replay_one(self, op: Op) -> None:
        match op.get("op"):
            case "open":
                self.graph = from_json({"format": "surefoot.graph", "version": 1, **op["graph"]})
            case "undo":
                self.undo()
            case "redo":
                self.redo()
            case _:
                self.do(op)


def digest(graph: Graph) -> str:
    """Of its text, layout included."""
    return hashlib.sha256(canonical(graph).encode()).hexdigest()
