"""Nodes made of typed functions."""

import pytest

from surefoot.errors import GraphError
from surefoot.graph.custom_node import Array, Number, declare
from surefoot.graph.nodes import REGISTRY
from surefoot.graph.spec.declare import NodeType


def twice(x: Array, factor: float = 2.0, note: str = "") -> Array:
    """Twice as much."""
    return factor * x


def test_a_typed_function_is_a_node() -> None:
    kind = declare(twice, "twice", "Mine")
    assert [port.name for port in kind.inputs] == ["x"]
    assert [(param.name, param.default) for param in kind.params] == [("factor", 2.0), ("note", "")]
    assert [port.name for port in kind.outputs] == ["value"]
    assert kind.summary == "Twice as much."


def wrong(x, factor: float) -> Number:
    return x


def test_a_function_without_types_and_one_inside_another_are_refused() -> None:
    with pytest.raises(GraphError, match="x has no type"):
        declare(wrong, "wrong", "Mine")

    def inside(x: Array) -> Array:
        return x

    with pytest.raises(GraphError, match="top level of a module"):
        declare(inside, "inside", "Mine")


def test_a_name_that_is_taken_is_refused() -> None:
    with pytest.raises(GraphError, match="exists already"):
        REGISTRY.add(NodeType(name="OR", category="x", summary="x", runtime="x:y"))
