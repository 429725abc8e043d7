"""An exported program as the graph it was written from: read from the block below it, else from its code."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from surefoot.errors import GraphError
from surefoot.graph.export.block import split_block
from surefoot.graph.export.standalone import MARK, StandaloneWriter, writer_of
from surefoot.graph.import_.script_reader import ScriptReader
from surefoot.graph.nodes import REGISTRY
from surefoot.graph.spec.model import Graph, Node
from surefoot.graph.spec.params import params_to_json, read_params
from surefoot.graph.spec.text import MOST_BYTES


@dataclass(slots=True)
class Imported:
    """A graph, and notes on what the import changed or could not read."""

    graph: Graph
    notes: list[str] = field(default_factory=list[str])


def import_program(path: Path | str) -> Imported:
    """Read a file."""
    path = Path(path)
    try:
        if path.stat().st_size > MOST_BYTES:
            raise GraphError(f"{path} has more than {MOST_BYTES:,} bytes")
        return from_program(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as why:
        raise GraphError(f"cannot read {path}: {why}") from why


def from_program(text: str) -> Imported:
    """Read a program's text; nothing in it is run."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as why:
        raise GraphError(f"this is not a Python program: {why}") from why
    program, graph, unchanged = split_block(text)
    if graph is not None and unchanged:
        return Imported(graph)
    if MARK not in (ast.get_docstring(tree) or ""):
        return Imported(*ScriptReader(program, tree).read())
    if graph is None:
        raise GraphError(
            "this program stands alone and the graph in its last lines is missing; a program that stands alone is read back "
            "from there only: export the graph again"
        )
    return _edited(program, tree, graph)


def _edited(text: str, tree: ast.Module, graph: Graph) -> Imported:
    """A program that stands alone and was edited: its graph with the new values; other changes become code nodes."""
    writer = writer_of(graph)
    exported = ast.parse(writer.text()).body
    same = {ast.unparse(each) for each in exported}
    notes: list[str] = []
    for each in tree.body[1:]:
        if isinstance(each, ast.ClassDef) and each.name == "Config":
            _take_values(each, writer, graph)
        elif ast.unparse(each) not in same:
            id = f"code_{1 + sum(node.type == 'Code' for node in graph.nodes.values())}"
            source = "\n".join(text.splitlines()[each.lineno - 1 : each.end_lineno])
            graph.nodes[id] = Node("Code", read_params(REGISTRY.get("Code"), {"source": source, "once": True}, who=id))
            notes.append(f"line {each.lineno}: {source.splitlines()[0][:60]!r} was changed by hand; it is kept as {id}")
    return Imported(graph, notes)


def _take_values(config: ast.ClassDef, writer: StandaloneWriter, graph: Graph) -> None:
    """Set what differs between this Config and the graph's own."""
    new: dict[str, Any] = {}
    for each in config.body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and each.value is not None:
            try:
                new[each.target.id] = ast.literal_eval(each.value)
            except ValueError as why:
                raise GraphError(
                    f"line {each.lineno}: {each.target.id} has no plain value; nothing is run to find out"
                ) from why
    for name in ("seed", "total_steps"):
        setattr(graph.run, name, new.get(name, getattr(graph.run, name)))
    for firing in writer.order:
        changed: dict[str, Any] = {}
        for name, (param, part, value) in writer.fields.values(firing).items():
            if new.get(name, value) == value:
                continue
            whole = changed.get(param, params_to_json(firing.declared, firing.params)[param])
            changed[param] = whole | {part: new[name]} if part else new[name]
        graph.nodes[firing.id].params |= read_params(firing.declared, changed, who=firing.id)
