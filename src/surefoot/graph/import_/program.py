"""Graphs from exported programs and from JSON of this or other programs. Nothing that is read is run."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surefoot.errors import GraphError
from surefoot.graph.export.block import split_block
from surefoot.graph.export.writing import read_literal
from surefoot.graph.import_.script_reader import ScriptReader
from surefoot.graph.nodes import REGISTRY
from surefoot.graph.spec.code_source import problem
from surefoot.graph.spec.model import Graph, Node
from surefoot.graph.spec.params import params_to_json, read_params
from surefoot.graph.spec.text import FORMAT, MOST_BYTES, from_json, parse_json

if TYPE_CHECKING:
    from surefoot.graph.export.standalone import StandaloneWriter

_READERS: dict[str, str] = {}
"""{format: module with the functions `is_workflow(content)` and `from_workflow(text)`}"""


@dataclass(slots=True)
class Imported:
    """A graph, and notes on what the import changed or could not read."""

    graph: Graph
    notes: list[str] = field(default_factory=list[str])


def register_format(name: str, module: str) -> None:
    """Let `from_json_text` read another format with the functions `is_workflow` and `from_workflow` of `module`."""
    _READERS[name] = module


def from_json_text(text: str) -> Imported:
    """Read a graph from its JSON, or from JSON of a registered format."""
    content = parse_json(text)
    if content.get("format") == FORMAT:
        return Imported(from_json(content))
    for module in _READERS.values():
        reader = import_module(module)
        if reader.is_workflow(content):
            return reader.from_workflow(text)
    raise GraphError(f"this is not {' or '.join([f'a graph with format {FORMAT!r}', *_READERS])}")


def import_program(path: Path | str) -> Imported:
    """Read a program from a file."""
    path = Path(path)
    try:
        if path.stat().st_size > MOST_BYTES:
            raise GraphError(f"{path} has more than {MOST_BYTES:,} bytes")
        return from_program(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as why:
        raise GraphError(f"cannot read {path}: {why}") from why


def from_program(text: str) -> Imported:
    """Return the graph of an exported program; an edited script is read from its code.

    Args:
        text: The text of a program that `surefoot graph export` wrote.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as why:
        raise GraphError(f"this is not a Python program: {why}") from why
    # Imported late: it imports torch, and the studio registers formats before its page is there.
    from surefoot.graph.export.standalone import MARK

    program, graph, unchanged = split_block(text)
    if graph is not None and unchanged:
        return Imported(graph)
    # An edited script is read from its code; a standalone program has no code that stands for single nodes.
    if MARK not in (ast.get_docstring(tree) or ""):
        return Imported(*ScriptReader(program, tree).read())
    if graph is None:
        raise GraphError(
            "the graph in the last lines of this standalone program is missing, and it cannot be read from the code; export "
            "the graph again"
        )
    return _edited(program, tree, graph)


def _edited(text: str, tree: ast.Module, graph: Graph) -> Imported:
    """Return the graph of an edited standalone program: new Config values are taken over, added statements become Code nodes."""
    from surefoot.graph.export.standalone import writer_of

    writer = writer_of(graph)
    statements = ast.parse(writer.text()).body
    exported, names = (
        {ast.unparse(each) for each in statements},
        {getattr(each, "name", "") for each in statements} - {""},
    )
    notes: list[str] = []
    for each in tree.body[1:]:
        if isinstance(each, ast.ClassDef) and each.name == "Config":
            _take_values(each, writer, graph)
        elif ast.unparse(each) not in exported:
            name = getattr(each, "name", "")
            source = "\n".join(text.splitlines()[each.lineno - 1 : each.end_lineno])
            # A node names a function of the library; a changed copy of it has no place in a graph.
            why = f"{name} is part of the algorithm" if name in names else problem(source)
            if why:
                raise GraphError(
                    f"line {each.lineno}: {source.splitlines()[0][:60]!r} was edited and cannot become a node: {why}; a graph "
                    "takes over the values of Config"
                )
            id = f"code_{1 + sum(node.type == 'Code' for node in graph.nodes.values())}"
            graph.nodes[id] = Node("Code", read_params(REGISTRY.get("Code"), {"source": source, "once": True}, who=id))
            notes.append(f"line {each.lineno}: {source.splitlines()[0][:60]!r} was edited; it is now the node {id}")
    return Imported(graph, notes)


def _take_values(config: ast.ClassDef, writer: StandaloneWriter, graph: Graph) -> None:
    """Set the parameters whose values in Config differ from the graph."""
    new: dict[str, Any] = {}
    for each in config.body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and each.value is not None:
            new[each.target.id] = read_literal(each.value, each.target.id)
    for name in ("seed", "total_steps"):
        setattr(graph.run, name, new.get(name, getattr(graph.run, name)))
    for firing in writer.order:
        changed: dict[str, Any] = {}
        for name, (param, part, value) in writer.fields.values(firing).items():
            if name not in new or new[name] == (list(value) if isinstance(value, tuple) else value):
                continue
            # A schedule has one field for its start and one for its end.
            content = changed.get(param, params_to_json(firing.declared, firing.params)[param])
            changed[param] = content | {part: new[name]} if part else new[name]
        graph.nodes[firing.id].params |= read_params(firing.declared, changed, who=firing.id)
