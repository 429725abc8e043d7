"""Code nodes: statements that no node of the catalogue stands for. They are kept as text and run only when trusted."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from surefoot.errors import GraphError
from surefoot.graph.spec.declare import NodeType, Port
from surefoot.graph.spec.model import require_name
from surefoot.graph.spec.types import ANY, CONST, TICK


def declared_as(id: str, params: Mapping[str, Any]) -> NodeType:
    """The kind of one code node: its ports are named by its parameters."""
    from surefoot.graph.nodes import REGISTRY

    base = REGISTRY.get("Code")
    source = str(params.get("source", ""))
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as why:
        raise GraphError(f"{id}: its source is not Python: {why}") from why
    inputs, outputs = (tuple(_port(id, name) for name in params.get(side, ())) for side in ("inputs", "outputs"))
    return replace(base, inputs=inputs, outputs=outputs, source=CONST if params.get("once") else TICK)


def _port(id: str, name: Any) -> Port:
    return Port(require_name(name, f"a port of {id}"), ANY, "A name that the code reads or writes.")
