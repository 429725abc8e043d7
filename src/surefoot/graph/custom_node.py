"""A node of your own from a typed function, with one decorator. No torch here.

    @node
    def double(x: Array, factor: float = 2.0) -> Array:
        "Twice as much."
        return factor * x

What is annotated with a port type (Array, Obs, Table, Trigger, Number…) is an input; int, float, bool and str are
parameters with the default as their default. What it returns is one output, or, of a tuple, several.
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
from surefoot.graph.spec.model import NAME, Node
from surefoot.graph.spec.params import read_params
from surefoot.graph.spec.types import Type, tensor


@dataclass(frozen=True, slots=True)
class Carries:
    """Marks an annotation as a port."""

    type: Type


Array = Annotated[np.ndarray, Carries(tensor())]
"""An array, one row a copy."""
Obs = Annotated[dict[str, np.ndarray], Carries(Type("obs"))]
"""Observations by part."""
Table = Annotated[dict[str, Any], Carries(Type("dict"))]
"""Numbers by name, such as loss_info."""
Number = Annotated[float, Carries(Type("number"))]
Trigger = Annotated[str, Carries(Type("trigger"))]
Anything = Annotated[Any, Carries(Type("any"))]

_KINDS: dict[Any, Kind] = {
    bool: flag(),
    int: integer(Interval(-(2**53), 2**53)),
    float: real(Interval()),
    str: text(1000),
}


def node(function: Callable[..., Any] | None = None, *, name: str | None = None, category: str = "Mine") -> Any:
    """Make a node of a function. It stays callable as before; its kind goes by its name in any graph."""
    if function is None:
        return partial(node, name=name, category=category)
    REGISTRY.add(declare(function, name or function.__name__, category))
    return function


def declare(function: Callable[..., Any], name: str, category: str) -> NodeType:
    """The kind of node that a typed function is."""
    if not NAME.fullmatch(name):
        raise GraphError(f"a node is called {name[:40]!r}; letters, digits and _ make a name")
    if "<locals>" in function.__qualname__ or function.__name__ == "<lambda>":
        raise GraphError(f"{name}: a node's function stands at the top of a module, so that programs can import it")
    hints = typing.get_type_hints(function, include_extras=True)
    inputs: list[Port] = []
    params: list[Param] = []
    for each in inspect.signature(function).parameters.values():
        if each.name not in hints:
            raise GraphError(f"{name}: {each.name} has no type; write {each.name}: Array, or float for a parameter")
        port = _port_type(hints[each.name])
        given = each.default is not inspect.Parameter.empty
        if port is not None:
            inputs.append(Port(each.name, port, f"{each.name} of {name}.", optional=given))
        elif hints[each.name] in _KINDS:
            default = each.default if given else REQUIRED
            params.append(Param(each.name, _KINDS[hints[each.name]], f"{each.name} of {name}.", default))
        else:
            raise GraphError(
                f"{name}: {each.name} is {hints[each.name]}; use Array, Obs, Table, Number, Trigger or int, float, bool, str"
            )
    return NodeType(
        name=name,
        category=category,
        summary=(inspect.getdoc(function) or "A node of your own.").splitlines()[0],
        inputs=tuple(inputs),
        outputs=_outputs(hints.get("return"), name),
        params=tuple(params),
        runtime=f"{function.__module__}:{function.__qualname__}",
        calls=f"{function.__module__}.{function.__qualname__}",
    )


def _port_type(hint: Any) -> Type | None:
    if typing.get_origin(hint) is not Annotated:
        return None
    return next((mark.type for mark in typing.get_args(hint)[1:] if isinstance(mark, Carries)), None)


def _outputs(hint: Any, name: str) -> tuple[Port, ...]:
    if hint is None or hint is type(None):
        return ()
    parts = typing.get_args(hint) if typing.get_origin(hint) is tuple else (hint,)
    types = [_port_type(part) for part in parts]
    if any(type is None for type in types):
        raise GraphError(f"{name}: it returns {hint}; return Array, Obs, Table, Number or Trigger, or a tuple of them")
    names = ["value"] if len(parts) == 1 else [f"value{k + 1}" for k in range(len(parts))]
    return tuple(Port(each, type or Type(), f"From {name}.") for each, type in zip(names, types, strict=True))


def kind_of(type: str) -> Callable[..., Node]:
    """A constructor of nodes of that kind: `PPOAgentNode(input_size=4, output_size=2)` makes one for `Graph.add`."""

    def make(**params: Any) -> Node:
        declared = REGISTRY.get(type)
        return Node(declared.name, read_params(declared, params))

    make.__name__ = make.__qualname__ = type
    make.__doc__ = REGISTRY.get(type).summary
    return make
