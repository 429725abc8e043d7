"""Graph documents: each a JSON file and the log of all its changes."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from surefoot.errors import GraphError
from surefoot.graph.export.svg import graph_of_page
from surefoot.graph.spec.check import check, guess_types
from surefoot.graph.spec.fixes import fix_of
from surefoot.graph.spec.history import History, digest
from surefoot.graph.spec.model import Graph
from surefoot.graph.spec.ops import Op
from surefoot.graph.spec.text import canonical, load_graph, parse_graph, to_json
from surefoot.graph.templates import template
from surefoot.server.studio.op_text import describe

# A larger file is not drawn as a small picture: it would cost more than the page.
MOST_OUTLINE = 200_000
VERSIONS = ".versions.json"
MOST_VERSIONS = 100
# A fix of a connection is found by trying: more than these would delay every change of a large graph.
MOST_FIXES, MOST_NODES = 16, 60
_WORD = r"[A-Za-z0-9][A-Za-z0-9 _.-]{0,60}"
NAME = re.compile(rf"(?:{_WORD}/)?{_WORD}")
"""A name, or folder/name."""


class Document:
    """One graph with its history. A change is on disk before any tab shows it."""

    def __init__(self, name: str, file: Path, graph: Graph | None = None) -> None:
        self.name, self.file = name, file
        log = file.parent / ".history" / f"{file.stem}.ndjson"
        log.parent.mkdir(parents=True, exist_ok=True)
        if log.exists() and b"\n" not in log.read_bytes():
            # A crash or a full disk cut off its first line: it has no graph, and must not pass for an empty one.
            log.unlink()
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
        try:
            temporary.write_text(canonical(self.graph), encoding="utf-8")
            os.replace(temporary, self.file)
        except OSError:
            with suppress(OSError):
                temporary.unlink()
            # The log has the change; a file that is older than the log is written again with the next change.
            if not self.file.exists():
                raise

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

    def versions(self) -> list[dict[str, Any]]:
        """Return the named versions with their graphs, newest first."""
        file = self.file.parent / ".history" / f"{self.file.stem}{VERSIONS}"
        return json.loads(file.read_text(encoding="utf-8")) if file.exists() else []

    def save_version(self, name: str) -> None:
        """Keep the graph as it is now under a name."""
        version = {"name": name.strip()[:80] or "version", "t": time.time(), "graph": to_json(self.graph)}
        file = self.file.parent / ".history" / f"{self.file.stem}{VERSIONS}"
        file.with_suffix(".new").write_text(json.dumps([version, *self.versions()][:MOST_VERSIONS]), encoding="utf-8")
        os.replace(file.with_suffix(".new"), file)

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


class GraphDirectory:
    """The documents of a directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self._open: dict[str, Document] = {}
        self._outlines: dict[str, tuple[tuple[int, int], dict[str, Any] | None]] = {}

    def names(self) -> list[dict[str, Any]]:
        """Return all documents, most recently changed first."""
        files: dict[str, os.stat_result] = {}
        for pattern in ("*.json", "[!.]*/*.json"):
            for file in self.root.glob(pattern):
                # Another program may have deleted it; a link may lead nowhere.
                with suppress(OSError):
                    if file.is_file():
                        files[file.relative_to(self.root).with_suffix("").as_posix()] = file.stat()
        ordered = sorted(files, key=lambda name: -files[name].st_mtime)
        return [{"name": n, "changed": files[n].st_mtime, "graph": self._outline(n, files[n])} for n in ordered]

    def _outline(self, name: str, stat: os.stat_result) -> dict[str, Any] | None:
        """Return what a small picture of a graph needs; None for a file that is not a graph, or too large for a picture."""
        stamp = (stat.st_mtime_ns, stat.st_size)
        if name not in self._outlines or self._outlines[name][0] != stamp:
            outline = None
            with suppress(GraphError):
                if stat.st_size < MOST_OUTLINE:
                    content = to_json(load_graph(self.root / f"{name}.json"))
                    nodes = {id: {"type": node["type"]} for id, node in content["nodes"].items()}
                    outline = {"nodes": nodes, "edges": content["edges"], "layout": content.get("layout", {})}
            self._outlines[name] = stamp, outline
        return self._outlines[name][1]

    def get(self, name: str) -> Document:
        """Return a document by name. Raise `GraphError` if it does not exist."""
        if name not in self._open:
            file = self._file(name)
            if not file.exists():
                raise GraphError(f"there is no graph {name[:60]!r} in this directory")
            self._open[name] = Document(name, file)
        return self._open[name]

    def new(self, name: str, graph: Graph) -> Document:
        """Create a document; a number is added to a name that exists. Raise `GraphError` if it could not be opened again."""
        parse_graph(canonical(graph))
        parts = [re.sub(r"[^A-Za-z0-9 _.-]+", "-", part).strip(" .-_")[:50] for part in name.split("/")[-2:]]
        free = self._free_name("/".join(part for part in parts if part) or "graph")
        # The history of a deleted document with this name must not become part of the new one.
        for file in self._sidecars(free):
            file.unlink(missing_ok=True)
        self._open[free] = Document(free, self._file(free), graph)
        return self._open[free]

    def from_template(self, name: str) -> Document:
        """Create a document from a template."""
        return self.new(name, template(name))

    def from_text(self, name: str, text: str) -> tuple[Document, list[str]]:
        """Create a document from a graph's JSON or page, a ComfyUI workflow or an exported program; return it with the notes."""
        # Imported late: they import torch, which would delay the page.
        from surefoot.graph.import_.program import from_json_text, from_program

        text = text.removeprefix("\ufeff")
        if text.lstrip().startswith("<"):
            text = graph_of_page(text)
        imported = from_json_text(text) if text.lstrip().startswith(("{", "[")) else from_program(text)
        return self.new(name, imported.graph), list(imported.notes)

    def move_to_trash(self, name: str) -> None:
        """Move a document and its history to .trash."""
        file = self.get(name).file
        # Nanoseconds: two graphs of one name may be deleted within a second.
        stamp = f"{time.strftime('%Y%m%d-%H%M%S')}-{time.time_ns() % 10**9}"
        trash = self.root / ".trash" / f"{name.replace('/', ' - ')}-{stamp}" / name
        trash.parent.mkdir(parents=True)
        os.replace(file, trash.parent / file.name)
        for each in self._sidecars(name):
            if each.exists():
                os.replace(each, trash.parent / each.name)
        del self._open[name]

    def trash(self) -> list[dict[str, Any]]:
        """Return the documents in .trash, the last one first."""
        rows = [
            {"item": item, "name": name, "changed": file.parent.stat().st_mtime} for item, name, file in self._trashed()
        ]
        return sorted(rows, key=lambda row: -row["changed"])

    def _trashed(self) -> list[tuple[str, str, Path]]:
        """Return (item, name, file) of the documents in .trash."""
        trash = self.root / ".trash"
        files = [
            f
            for pattern in ("*/*.json", "*/[!.]*/*.json")
            for f in trash.glob(pattern)
            if not f.name.endswith(VERSIONS)
        ]
        paths = [(f.relative_to(trash), f) for f in files]
        return [(path.parts[0], "/".join(path.with_suffix("").parts[1:]), f) for path, f in paths]

    def restore(self, item: str) -> Document:
        """Move a document of .trash back, with its history; a number is added to a name that exists."""
        found = next(((name, file) for each, name, file in self._trashed() if each == item), None)
        if found is None:
            raise GraphError(f"there is no {item[:60]!r} in the trash")
        name, file = self._free_name(found[0]), found[1]
        self._move(file, [file.with_name(each.name) for each in self._sidecars(found[0])], name)
        shutil.rmtree(self.root / ".trash" / item)
        return self.get(name)

    def rename(self, name: str, to: str) -> Document:
        """Rename a document, or move it to another folder, with its history."""
        document, target = self.get(name), self._file(to)
        if to == name:
            return document
        if target.exists():
            raise GraphError(f"there is already a graph {to!r}")
        del self._open[name]
        self._move(document.file, self._sidecars(name), to)
        with suppress(OSError):
            # The folder, if nothing else is in it.
            (document.file.parent / ".history").rmdir()
            document.file.parent.rmdir()
        return self.get(to)

    def _move(self, file: Path, sidecars: list[Path], name: str) -> None:
        """Move a document, its history and its versions into this directory under `name`."""
        for each, target in zip(sidecars, self._sidecars(name), strict=True):
            target.parent.mkdir(parents=True, exist_ok=True)
            if each.exists():
                os.replace(each, target)
        os.replace(file, self._file(name))

    def _sidecars(self, name: str) -> list[Path]:
        """Return the files of the history and the versions of a document."""
        file = self._file(name)
        return [file.parent / ".history" / f"{file.stem}{end}" for end in (".ndjson", VERSIONS)]

    def _free_name(self, base: str) -> str:
        free, number = base, 2
        while self._file(free).exists():
            free, number = f"{base}-{number}", number + 1
        return free

    def _file(self, name: str) -> Path:
        if not NAME.fullmatch(name):
            raise GraphError(
                f"{name[:60]!r} is not a valid name; use letters, digits, spaces, dots, dashes and underscores, and "
                "one / behind a folder"
            )
        return self.root / f"{name}.json"
