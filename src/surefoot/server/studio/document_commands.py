"""The commands of a browser tab that concern graphs: create, change, connect, fix, undo, rename, delete."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from surefoot.errors import GraphError
from surefoot.graph.export.svg import to_page, to_svg
from surefoot.graph.spec.check import check, guess_types
from surefoot.graph.spec.fit import fits
from surefoot.graph.spec.fixes import connected, fix_all, fix_of
from surefoot.graph.spec.model import Graph
from surefoot.graph.spec.ops import Op
from surefoot.graph.spec.subgraphs import group, ungroup, within
from surefoot.graph.spec.text import canonical
from surefoot.server.studio.graph_files import Document, GraphDirectory
from surefoot.server.studio.op_text import moves_of
from surefoot.server.studio.saved_nodes import SavedNodes


class DocumentCommands:
    """Commands on the graphs of a directory; `broadcast` receives every change, for all tabs.

    Args:
        graphs: The documents.
        broadcast: Called with every message for the tabs.
        is_busy: Whether a graph is running.
    """

    def __init__(
        self, graphs: GraphDirectory, broadcast: Callable[[dict[str, Any]], None], is_busy: Callable[[str], bool]
    ) -> None:
        self.graphs, self.broadcast, self.is_busy = graphs, broadcast, is_busy
        self.saved_nodes = SavedNodes(graphs.root / ".nodes")

    def do_documents(self) -> list[dict[str, Any]]:
        return self.graphs.names()

    def do_open(self, doc: str) -> dict[str, Any]:
        return self.graphs.get(doc).to_json()

    def do_new(self, name: str = "untitled", template: str = "") -> dict[str, Any]:
        return self.created(self.graphs.from_template(template) if template else self.graphs.new(name, Graph(name)))

    def do_import(self, name: str, text: str) -> dict[str, Any]:
        document, notes = self.graphs.from_text(name, text)
        return self.created(document) | {"notes": notes}

    def do_put_away(self, doc: str) -> dict[str, Any]:
        """Move a graph to the trash."""
        self._refuse_busy(doc)
        self.graphs.move_to_trash(doc)
        self.broadcast_names()
        return {"doc": doc}

    def do_trash(self) -> list[dict[str, Any]]:
        return self.graphs.trash()

    def do_restore(self, item: str) -> dict[str, Any]:
        return self.created(self.graphs.restore(item))

    def do_rename(self, doc: str, name: str) -> dict[str, Any]:
        """Rename a graph; its history stays with it."""
        self._refuse_busy(doc)
        return self.created(self.graphs.rename(doc, name))

    def do_duplicate(self, doc: str) -> dict[str, Any]:
        return self.created(self.graphs.new(doc, self.graphs.get(doc).graph.copy()))

    def _refuse_busy(self, doc: str) -> None:
        if self.is_busy(doc):
            raise GraphError(f"{doc} is running; stop it first")

    def broadcast_names(self) -> None:
        """Send the list of graphs to all tabs."""
        self.broadcast({"on": "documents", "documents": self.graphs.names()})

    def created(self, document: Document) -> dict[str, Any]:
        """Announce a new graph and return what a tab shows of it."""
        self.broadcast_names()
        return document.to_json()

    def do_op(self, doc: str, op: Op, inside: str = "") -> dict[str, Any]:
        return self.change(doc, {"op": "within", "graph": inside, "do": op} if inside else op)

    def do_connect(self, doc: str, source: str, target: str, inside: str = "") -> dict[str, Any]:
        """Draw an edge; an edge that the input has is replaced, and sizes that follow from the environment are set."""
        op = connected(self._graph(doc, inside), source, target)
        drawn = next(each for each in op.get("ops", [op]) if each["op"] == "connect")
        return self.do_op(doc, op, inside) | {"delay": drawn.get("delay")}

    def do_fix(self, doc: str, finding: int | None = None, inside: str = "") -> dict[str, Any]:
        """Fix one finding of the check, by its position, or all of them."""
        graph = self._graph(doc, inside)
        checked = check(graph)
        op = fix_all(graph) if finding is None else fix_of(graph, checked.findings[finding], guess_types(checked))
        if op is None:
            raise GraphError("nothing here can be fixed automatically")
        return self.do_op(doc, op, inside)

    def do_fits(self, doc: str, source: str, inside: str = "") -> dict[str, Any]:
        return {end: fit.to_json() for end, fit in fits(self._graph(doc, inside), source).items()}

    def do_group(self, doc: str, ids: list[str], name: str, inside: str = "") -> dict[str, Any]:
        if name in self.graphs.get(doc).graph.graphs:
            raise GraphError(f"a sub-graph {name[:40]!r} already exists; use another name")
        op = group(self._graph(doc, inside), ids, name)
        return self.change(doc, within(op, inside) if inside else op)

    def do_ungroup(self, doc: str, id: str, inside: str = "") -> dict[str, Any]:
        op = ungroup(self._graph(doc, inside), id, self.graphs.get(doc).graph)
        return self.change(doc, within(op, inside) if inside else op)

    def do_undo(self, doc: str) -> bool:
        return self._after_history(doc, self.graphs.get(doc).undo())

    def do_redo(self, doc: str) -> bool:
        return self._after_history(doc, self.graphs.get(doc).redo())

    def do_go_to(self, doc: str, number: int) -> bool:
        self.graphs.get(doc).go_to(int(number))
        return self._after_history(doc, True)

    def do_share(self, doc: str) -> dict[str, Any]:
        """Return a picture and a page of a graph; the page carries the graph."""
        graph = self.graphs.get(doc).graph
        return {"svg": to_svg(graph), "html": to_page(graph), "json": canonical(graph)}

    def do_versions(self, doc: str) -> list[dict[str, Any]]:
        """Return name and time of the versions, newest first."""
        return [{name: each[name] for name in ("name", "t")} for each in self.graphs.get(doc).versions()]

    def do_save_version(self, doc: str, name: str) -> list[dict[str, Any]]:
        self.graphs.get(doc).save_version(name)
        return self.do_versions(doc)

    def do_open_version(self, doc: str, number: int) -> dict[str, Any]:
        """Replace the graph by a version, which can be undone."""
        return self.change(doc, {"op": "replace", "graph": self.graphs.get(doc).versions()[number]["graph"]})

    def do_saved_nodes(self) -> list[dict[str, Any]]:
        return self.saved_nodes.to_json()

    def do_save_node(self, doc: str, id: str, name: str, inside: str = "") -> list[dict[str, Any]]:
        """Save a group as a node that every graph can use."""
        self.saved_nodes.save(name, self._graph(doc, inside), id, self.graphs.get(doc).graph)
        return self._announce_nodes()

    def do_forget_node(self, name: str) -> list[dict[str, Any]]:
        self.saved_nodes.remove(name)
        return self._announce_nodes()

    def _announce_nodes(self) -> list[dict[str, Any]]:
        self.broadcast({"on": "saved_nodes", "nodes": self.do_saved_nodes()})
        return self.do_saved_nodes()

    def do_add_saved(
        self, doc: str, name: str, id: str, at: list[float] | None = None, inside: str = ""
    ) -> dict[str, Any]:
        """Add a saved node."""
        op = self.saved_nodes.added(self.graphs.get(doc).graph, name, id, at)
        return self.change(doc, within(op, inside) if inside else op)

    def do_history(self, doc: str) -> list[dict[str, Any]]:
        return self.graphs.get(doc).past()

    def _graph(self, doc: str, inside: str) -> Graph:
        graph = self.graphs.get(doc).graph
        if not inside:
            return graph
        if inside not in graph.graphs:
            raise GraphError(f"unknown sub-graph {inside[:40]!r}")
        return graph.graphs[inside]

    def change(self, doc: str, op: Op) -> dict[str, Any]:
        """Apply a change and send it to all tabs."""
        document = self.graphs.get(doc)
        document.do(op)
        if (moves := moves_of(op)) is not None:
            counts = {"done": len(document.history.done), "undone": 0, "version": document.version}
            self.broadcast({"on": "moved", "doc": doc, "moves": moves, "inside": op.get("graph", ""), **counts})
        else:
            self.broadcast({"on": "doc", **document.to_json()})
        return {"version": document.version}

    def _after_history(self, doc: str, changed: bool) -> bool:
        if changed:
            self.broadcast({"on": "doc", **self.graphs.get(doc).to_json()})
        return changed
