"""The decorator `node`, which turns a typed function into a node type. Nothing here imports torch.

    @node
    def double(x: Array, factor: float = 2.0) -> Array:
        "Multiply by a factor."
        return factor * x

Arguments annotated with a port type (Array, Obs, Table, Trigger, Number) are inputs; int, float, bool and str are
parameters. The return value is one output; a tuple has several.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np

from surefoot.data.kinds import Interval, Kind, flag, integer, real
from surefoot.errors import GraphError
from surefoot.graph.nodes import REGISTRY
from surefoot.graph.nodes.param_kinds import text
from surefoot.graph.spec.declare import REQUIRED, NodeType, Param, Port
from surefoot.graph.spec.model import Node, make_node, require_name
from surefoot.graph.spec.types import Type, tensor


@dataclass(frozen=True, slots=True)
class Carries:
    """Marks an annotation as a port of this type."""

    type: Type


Array = Annotated[np.ndarray, Carries(tensor())]
"""An array, one row per copy."""
Obs = Annotated[dict[str, np.ndarray], Carries(Type("obs"))]
"""Observations by part."""
Table = Annotated[dict[str, Any], Carries(Type("dict"))]
"""Numbers by name, such as loss_info."""
Number = Annotated[float, Carries(Type("number"))]
Trigger = Annotated[str, Carries(Type("trigger"))]
Anything = Annotated[Any, Carries(Type("any"))]

# Whole numbers stay within ±2^53, which JSON and browsers represent exactly.
_KINDS: dict[Any, Kind] = {
    bool: flag(),
    int: integer(Interval(-(2**53), 2**53)),
    float: real(Interval()),
    str: text(1000),
}


def node(function: Callable[..., Any] | None = None, *, name: str | None = None, category: str = "Mine") -> Any:
    """Register a typed function as a node type and return the function unchanged.

    Args:
        function: The function; omit it to use the decorator with arguments.
        name: Name of the node type; the function's name by default.
        category: Category in the editor's palette.
    """
    if function is None:
        return partial(node, name=name, category=category)
    REGISTRY.add(declare(function, name or function.__name__, category))
    return function


def declare(function: Callable[..., Any], name: str, category: str) -> NodeType:
    """Return the node type of a typed function."""
    require_name(name, "a node type")
    # Exported programs and worker processes import the function by its name.
    if "<locals>" in function.__qualname__ or function.__name__ == "<lambda>":
        raise GraphError(f"{name}: define the function at the top level of a module, so that programs can import it")
    hints = typing.get_type_hints(function, include_extras=True)
    inputs: list[Port] = []
    params: list[Param] = []
    for each in inspect.signature(function).parameters.values():
        if each.name not in hints:
            raise GraphError(f"{name}: {each.name} has no type; write {each.name}: Array, or float for a parameter")
        hint, help = hints[each.name], f"{each.name} of {name}."
        has_default = each.default is not inspect.Parameter.empty
        if (port := _port_type(hint)) is not None:
            inputs.append(Port(each.name, port, help, optional=has_default))
        elif hint in _KINDS:
            params.append(Param(each.name, _KINDS[hint], help, each.default if has_default else REQUIRED))
        else:
            raise GraphError(
                f"{name}: {each.name} is {hint}; use Array, Obs, Table, Number, Trigger or int, float, bool, str"
            )
    result = hints.get("return")
    results = () if result in (None, type(None)) else typing.get_args(result) if _is_tuple(result) else (result,)
    types = [_port_type(each) for each in results]
    if None in types:
        raise GraphError(
            f"{name}: it returns {result}; return Array, Obs, Table, Number or Trigger, or a tuple of them"
        )
    names = ["value"] if len(types) == 1 else [f"value{k + 1}" for k in range(len(types))]
    return NodeType(
        name=name,
        category=category,
        summary=(inspect.getdoc(function) or "A custom node.").splitlines()[0],
        inputs=tuple(inputs),
        outputs=tuple(
            Port(each, port or Type(), f"Output of {name}.") for each, port in zip(names, types, strict=True)
        ),
        params=tuple(params),
        runtime=f"{function.__module__}:{function.__qualname__}",
        calls=f"{function.__module__}.{function.__qualname__}",
    )


def _is_tuple(hint: Any) -> bool:
    return typing.get_origin(hint) is tuple


def _port_type(hint: Any) -> Type | None:
    if typing.get_origin(hint) is not Annotated:
        return None
    return next((mark.type for mark in typing.get_args(hint)[1:] if isinstance(mark, Carries)), None)


def kind_of(type: str) -> Callable[..., Node]:
    """Return a constructor of nodes of a type: `PPOAgentNode(input_size=4, output_size=2)` makes one for `Graph.add`."""

    def make(**params: Any) -> Node:
        return make_node(type, **params)

    make.__name__ = make.__qualname__ = type
    make.__doc__ = REGISTRY.get(type).summary
    return make
