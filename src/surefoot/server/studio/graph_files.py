"""Graph documents: each a JSON file and the log of all its changes."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import Any

from surefoot.errors import GraphError
from surefoot.graph.export.svg import graph_of_page
from surefoot.graph.spec.check import check, guess_types
from surefoot.graph.spec.fixes import fix_of
from surefoot.graph.spec.history import History, digest
from surefoot.graph.spec.model import Graph
from surefoot.graph.spec.ops import Op
from surefoot.graph.spec.text import canonical, load_graph, to_json
from surefoot.graph.templates import template

# A fix of a connection is found by trying: more than these would delay every change of a large graph.
MOST_FIXES, MOST_NODES = 16, 60
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.-]{0,60}")


class Document:
    """One graph with its history. A change is on disk before any tab shows it."""

    def __init__(self, name: str, file: Path, graph: Graph | None = None) -> None:
        self.name, self.file = name, file
        log = file.parent / ".history" / f"{file.stem}.ndjson"
        log.parent.mkdir(parents=True, exist_ok=True)
        self.history = History(graph or (load_graph(file) if file.exists() and not log.exists() else None), log)
        self.version = 0
        if graph is None and file.exists():
            # A file that the log never produced was edited by another program: adopt it. After a crash the file can be
            # older than the log; its digest is known then.
            current = load_graph(file)
            if self.history.digests and digest(current) not in self.history.digests:
                self.history.do({"op": "replace", "graph": to_json(current)})
        self._save()

    @property
    def graph(self) -> Graph:
        return self.history.graph

    def do(self, op: Op) -> None:
        """Apply a change."""
        self.history.do(op)
        self._changed()

    def undo(self) -> bool:
        """Undo the last change; return False if there is none."""
        return self.history.undo() and self._changed()

    def redo(self) -> bool:
        """Redo the last undone change; return False if there is none."""
        return self.history.redo() and self._changed()

    def go_to(self, number: int) -> None:
        """Go to the graph as it was after `number` changes."""
        while len(self.history.done) > max(0, number) and self.history.undo():
            pass
        while len(self.history.done) < number and self.history.redo():
            pass
        self._changed()

    def _changed(self) -> bool:
        self.version += 1
        self._save()
        return True

    def _save(self) -> None:
        temporary = self.file.with_suffix(".json.new")
        temporary.write_text(canonical(self.graph), encoding="utf-8")
        os.replace(temporary, self.file)

    def to_json(self) -> dict[str, Any]:
        """Return what a tab shows."""
        return {
            "doc": self.name,
            "version": self.version,
            "graph": to_json(self.graph),
            "check": checked_json(self.graph),
            "inside": {name: checked_json(inner) for name, inner in self.graph.graphs.items()},
            "done": len(self.history.done),
            "undone": len(self.history.undone),
        }

    def past(self, most: int = 200) -> list[dict[str, Any]]:
        """Return the last changes in words, newest first, including those that were undone."""
        done = [(number, op, True) for number, (op, _) in enumerate(self.history.done, 1)]
        total = len(done)
        undone = [(total + i, op, False) for i, (op, _) in enumerate(reversed(self.history.undone), 1)]
        rows = [*done, *undone][-most:][::-1]
        return [{"number": number, "words": describe(op), "done": is_done} for number, op, is_done in rows]


def checked_json(graph: Graph) -> dict[str, Any]:
    """Return the findings of the check with their fixes in words; of an unfinished graph, the types that can be inferred."""
    checked = check(graph)
    guess, result = guess_types(checked), checked.to_json()
    for finding, row in zip(checked.findings[:MOST_FIXES], result["findings"], strict=False):
        op = fix_of(graph, finding, guess) if len(graph.nodes) <= MOST_NODES else None
        row["fix"] = "" if op is None else describe(op)
    return result if not checked.errors else result | {"outputs": guess.to_json()["outputs"]}


DESCRIPTIONS = {
    "add": "added {id} ({type})",
    "remove": "removed {id}",
    "connect": "connected {from} → {to}",
    "disconnect": "disconnected {to}",
    "move": "moved {id}",
    "rename": "renamed {id} to {to}",
}


def describe(op: Op) -> str:
    """Return a change as a short description."""
    match op.get("op"):
        case "set":
            changes = ", ".join([*(f"{k} = {v}" for k, v in op.get("params", {}).items()), *op.get("unset", ())])
            return f"set {op['id']}: {changes[:80]}"
        case "within":
            return f"in {op['graph']}: {describe(op['do'])}"
        case "define":
            return f"{'removed' if op['graph'] is None else 'changed'} sub-graph {op['name']}"
        case "run":
            return f"run settings: {', '.join(f'{k} = {v}' for k, v in op['settings'].items())}"
        case "batch":
            ops: list[Op] = op["ops"]
            first = describe(ops[0]) if ops else "nothing"
            if len(ops) < 2:
                return first
            only_moves = all(each["op"] == "move" for each in ops)
            return f"moved {len(ops)} nodes" if only_moves else f"{first} and {len(ops) - 1} more"
        case kind:
            return DESCRIPTIONS[kind].format_map(op) if kind in DESCRIPTIONS else str(kind)


def moves_of(op: Op) -> dict[str, Any] | None:
    """Return {node: position} of an operation that only moves nodes; None of any other."""
    if op["op"] == "within":
        return moves_of(op["do"])
    ops: list[Op] = op["ops"] if op["op"] == "batch" else [op]
    return {each["id"]: each["at"] for each in ops} if ops and all(each["op"] == "move" for each in ops) else None


class GraphDirectory:
    """The documents of a directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self._open: dict[str, Document] = {}

    def names(self) -> list[dict[str, Any]]:
        """Return all documents, most recently changed first."""
        files = sorted(self.root.glob("*.json"), key=lambda file: -file.stat().st_mtime)
        return [{"name": file.stem, "changed": file.stat().st_mtime} for file in files]

    def get(self, name: str) -> Document:
        """Return a document by name. Raise `GraphError` if it does not exist."""
        if name not in self._open:
            file = self._file(name)
            if not file.exists():
                raise GraphError(f"there is no graph {name[:60]!r} in this directory")
            self._open[name] = Document(name, file)
        return self._open[name]

    def new(self, name: str, graph: Graph) -> Document:
        """Create a document; a number is added to a name that exists."""
        base = re.sub(r"[^A-Za-z0-9 _.-]+", "-", name).strip(" .-")[:50] or "graph"
        free = self._free_name(base)
        # The history of a deleted document with this name must not become part of the new one.
        self._file(free).parent.joinpath(".history", f"{free}.ndjson").unlink(missing_ok=True)
        self._open[free] = Document(free, self._file(free), graph)
        return self._open[free]

    def from_template(self, name: str) -> Document:
        """Create a document from a template."""
        return self.new(name, template(name))

    def from_text(self, name: str, text: str) -> tuple[Document, list[str]]:
        """Create a document from a graph's JSON or page, a ComfyUI workflow or an exported program; return it with the notes."""
        # Imported late: they import torch, which would delay the page.
        from surefoot.graph.import_.program import from_json_text, from_program

        if text.lstrip().startswith("<"):
            text = graph_of_page(text)
        imported = from_json_text(text) if text.lstrip().startswith("{") else from_program(text)
        return self.new(name, imported.graph), list(imported.notes)

    def move_to_trash(self, name: str) -> None:
        """Move a document and its history to .trash."""
        document = self.get(name)
        # Nanoseconds: two graphs of one name may be deleted within a second.
        trash = self.root / ".trash" / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}-{time.time_ns() % 10**9}"
        trash.mkdir(parents=True)
        log = document.history.file
        os.replace(document.file, trash / document.file.name)
        if log is not None and log.exists():
            os.replace(log, trash / log.name)
        del self._open[name]

    def trash(self) -> list[dict[str, Any]]:
        """Return the documents in .trash, the last one first."""
        files = sorted(self.root.glob(".trash/*/*.json"), key=lambda file: -file.parent.stat().st_mtime)
        return [{"item": f.parent.name, "name": f.stem, "changed": f.parent.stat().st_mtime} for f in files]

    def restore(self, item: str) -> Document:
        """Move a document of .trash back, with its history; a number is added to a name that exists."""
        file = next((f for f in self.root.glob(".trash/*/*.json") if f.parent.name == item), None)
        if file is None:
            raise GraphError(f"there is no {item[:60]!r} in the trash")
        name = self._free_name(file.stem)
        self._move(file, file.with_suffix(".ndjson"), name)
        file.parent.rmdir()
        return self.get(name)

    def rename(self, name: str, to: str) -> Document:
        """Rename a document and its history."""
        document, target = self.get(name), self._file(to)
        if target.exists():
            raise GraphError(f"there is already a graph {to!r}")
        log = document.history.file
        assert log is not None
        del self._open[name]
        self._move(document.file, log, to)
        return self.get(to)

    def _move(self, file: Path, log: Path, name: str) -> None:
        """Move a document and its history into this directory under `name`."""
        history = self.root / ".history" / f"{name}.ndjson"
        history.parent.mkdir(exist_ok=True)
        if log.exists():
            os.replace(log, history)
        os.replace(file, self._file(name))

    def _free_name(self, base: str) -> str:
        free, number = base, 2
        while self._file(free).exists():
            free, number = f"{base}-{number}", number + 1
        return free

    def _file(self, name: str) -> Path:
        if not NAME.fullmatch(name):
            raise GraphError(
                f"{name[:60]!r} is not a valid name; use letters, digits, spaces, dots, dashes and underscores"
            )
        return self.root / f"{name}.json"
