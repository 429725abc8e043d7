"""A graph with undo and redo; the log of its operations is also the autosave."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import time
from contextlib import suppress
from pathlib import Path

from surefoot.errors import GraphError
from surefoot.graph.spec.model import Graph
from surefoot.graph.spec.ops import Op, apply, graph_of
from surefoot.graph.spec.text import canonical, parse_json, to_json


class History:
    """A graph with undo and redo.

    Args:
        graph: The graph to start with; empty by default.
        file: Log file. Each change is on disk before `do` returns, or it is undone and `OSError` is raised; an existing log is
            replayed.
    """

    def __init__(self, graph: Graph | None = None, file: Path | str | None = None) -> None:
        self.graph = graph or Graph()
        self.digests: set[str] = set()
        """Digests of all states in the log; a file with one of them is an older state, not somebody else's edit."""
        self.done: list[tuple[Op, Op]] = []
        """(operation, inverse)"""
        self.undone: list[tuple[Op, Op]] = []
        self.file = None if file is None else Path(file)
        if self.file is not None and self.file.exists():
            self._replay(self.file)
        elif self.file is not None:
            self._write({"op": "open", "graph": to_json(self.graph)})

    def do(self, op: Op) -> None:
        """Apply an operation; operations that were undone can no longer be redone."""
        inverse = apply(self.graph, op)
        self._write(op, inverse)
        self.done.append((op, inverse))
        self.undone = []

    def undo(self) -> bool:
        """Undo the last operation; return False if there is none."""
        if not self.done:
            return False
        op, inverse = self.done[-1]
        apply(self.graph, inverse)
        self._write({"op": "undo"}, op)
        self.undone.append(self.done.pop())
        return True

    def redo(self) -> bool:
        """Apply the operation that was undone last; return False if there is none."""
        if not self.undone:
            return False
        op, _ = self.undone[-1]
        inverse = apply(self.graph, op)
        self._write({"op": "redo"}, inverse)
        self.undone.pop()
        self.done.append((op, inverse))
        return True

    def _write(self, op: Op, inverse: Op | None = None) -> None:
        """Append a line to the log. If that fails, on a full disk for instance, apply `inverse` and raise `OSError`."""
        if self.file is None:
            return
        # The time is for people who read the log; replay ignores it.
        line = json.dumps({**op, "t": round(time.time(), 3)}, ensure_ascii=False, separators=(",", ":")) + "\n"
        size = None
        try:
            with open(self.file, "ab", buffering=0) as file:
                size = file.tell()
                if file.write(content := line.encode()) != len(content):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.file))
                # Without fsync a power failure could lose changes that the editor showed as saved.
                os.fsync(file.fileno())
        except OSError:
            if inverse is not None:
                apply(self.graph, inverse)
            if size is not None:
                # What was written of the line would be taken for a change, or the next line be joined to it.
                with suppress(OSError):
                    os.truncate(self.file, size)
            raise

    def _replay(self, path: Path) -> None:
        """Apply a log; a torn last line, left by a crash while writing, is cut off."""
        # Operations that are replayed must not be written again.
        self.file = None
        lines = path.read_text(encoding="utf-8").split("\n")
        for number, line in enumerate(lines[:-1], 1):
            try:
                op = parse_json(line)
                match op.get("op"):
                    case "open":
                        self.graph = graph_of(op["graph"])
                    case "undo":
                        self.undo()
                    case "redo":
                        self.redo()
                    case _:
                        self.do(op)
                self.digests.add(digest(self.graph))
            except GraphError as why:
                raise GraphError(f"{path}, line {number}: {why}") from why
        self.file = path
        if lines[-1]:
            with open(path, "r+b") as file:
                file.truncate(sum(len(line.encode()) + 1 for line in lines[:-1]))


def digest(graph: Graph) -> str:
    """Return the sha256 of the canonical text, layout included."""
    return hashlib.sha256(canonical(graph).encode()).hexdigest()
