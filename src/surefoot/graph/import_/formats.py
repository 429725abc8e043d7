"""JSON files that are graphs of other programs. Their readers are registered from above: this room knows none."""

from __future__ import annotations

from importlib import import_module

from surefoot.errors import GraphError
from surefoot.graph.import_.program import Imported
from surefoot.graph.spec.text import FORMAT, from_json, parse_json

_READERS: dict[str, str] = {}
"""{what it reads: module with the functions `is_workflow(content)` and `from_workflow(text)`}"""


def register_format(what: str, module: str) -> None:
    """Let `from_json_text` read another format, with the functions `is_workflow` and `from_workflow` of `module`."""
    _READERS[what] = module


def from_json_text(text: str) -> Imported:
    """Read a graph's JSON, or that of a registered format."""
    content = parse_json(text)
    if content.get("format") == FORMAT:
        return Imported(from_json(content))
    for module in _READERS.values():
        reader = import_module(module)
        if reader.is_workflow(content):
            return reader.from_workflow(text)
    raise GraphError(f"this is not {' or '.join([f'a graph with format {FORMAT!r}', *_READERS])}")
