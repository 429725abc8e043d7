"""Groups that were saved as nodes: sub-graphs in files, with their own ports, for all graphs of a directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from surefoot.errors import GraphError
from surefoot.graph.spec.model import Graph, require_name
from surefoot.graph.spec.ops import Op
from surefoot.graph.spec.subgraphs import SUBGRAPH, ports_of
from surefoot.graph.spec.text import canonical, load_graph, to_json


class SavedNodes:
    """The saved nodes of a directory, one graph file each."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def to_json(self) -> list[dict[str, Any]]:
        """Return name and ports of all saved nodes; a file that is not a graph is left out."""
        rows: list[dict[str, Any]] = []
        for file in sorted(self.root.glob("*.json")):
            try:
                inputs, outputs = ports_of(load_graph(file))
            except GraphError:
                continue
            rows.append({"name": file.stem, "inputs": list(inputs), "outputs": list(outputs)})
        return rows

    def save(self, name: str, graph: Graph, id: str, outer: Graph) -> None:
        """Save the sub-graph of a SubGraph node, with the definitions that it uses; one of that name is replaced."""
        require_name(name, "a saved node")
        known, node = {**outer.graphs, **graph.graphs}, graph.nodes.get(id)
        inner = known.get(str(node.params.get("graph", ""))) if node is not None and node.type == SUBGRAPH else None
        if inner is None:
            raise GraphError(f"{id[:40]!r} is not a group; group nodes first, then save the group")
        saved = inner.copy()
        saved.name, saved.graphs = name, {each: known[each].copy() for each in _used(inner, known)}
        self.root.mkdir(exist_ok=True)
        self._file(name).write_text(canonical(saved), encoding="utf-8")

    def added(self, graph: Graph, name: str, id: str, at: list[float] | None = None) -> Op:
        """Return the operation that adds a saved node to a graph; a different sub-graph of its name keeps its own."""
        if not self._file(name).exists():
            raise GraphError(f"there is no saved node {name[:40]!r}")
        saved = load_graph(self._file(name))
        content, free, number = to_json(saved), name, 2
        while free in graph.graphs and to_json(graph.graphs[free]) != content:
            free, number = f"{name}_{number}", number + 1
        define = [] if free in graph.graphs else [{"op": "define", "name": free, "graph": content}]
        add: Op = {"op": "add", "id": id, "type": SUBGRAPH, "params": {"graph": free}}
        return {"op": "batch", "ops": [*define, add | ({} if at is None else {"at": at})]}

    def remove(self, name: str) -> None:
        """Remove a saved node; graphs that use it keep their copy."""
        self._file(name).unlink(missing_ok=True)

    def _file(self, name: str) -> Path:
        return self.root / f"{require_name(name, 'a saved node')}.json"


def _used(inner: Graph, known: dict[str, Graph]) -> set[str]:
    """Return the names of all sub-graphs inside a sub-graph."""
    used: set[str] = set()
    todo = [inner]
    while todo:
        names = {str(each.params.get("graph", "")) for each in todo.pop().nodes.values() if each.type == SUBGRAPH}
        todo += [known[name] for name in names - used if name in known]
        used |= names & set(known)
    return used
