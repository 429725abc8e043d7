"""Declarations of node types and the registry."""

import pytest

from surefoot.data.kinds import Interval, integer
from surefoot.errors import GraphError
from surefoot.graph.nodes import REGISTRY
from surefoot.graph.spec.declare import Misfit, NodeType, Param, Port, Registry, code_type
from surefoot.graph.spec.types import CONST, ONCE, TICK, Type, every


def test_a_node_fires_with_its_deciding_inputs_and_not_with_sampled_ones() -> None:
    ports = (Port("a", Type(), "a"), Port("b", Type(), "b"), Port("held", Type(), "held", sampled=True))
    declared = NodeType(name="X", category="", summary="", inputs=ports)
    assert declared.firing({"a": every(4), "b": CONST, "held": TICK}) == every(4)
    assert declared.firing({"b": CONST}) == CONST
    with pytest.raises(Misfit, match="both must arrive together"):
        declared.firing({"a": every(4), "b": ONCE})


def test_the_tooltip_of_a_parameter_names_its_aliases() -> None:
    param = Param("lr", integer(Interval()), "Learning rate.", 1, aliases=("learning_rate",))
    assert param.to_json()["help"] == "Learning rate. Also called learning_rate."
    assert Param("lr", integer(Interval()), "Learning rate.", 1).tooltip == "Learning rate."


def test_a_built_in_type_keeps_its_name_and_a_custom_one_may_be_declared_again() -> None:
    registry = Registry()
    registry.add(NodeType(name="X", category="", summary="", runtime="surefoot.x:X", aliases=("Y",)))
    with pytest.raises(GraphError, match="'Y' exists already"):
        registry.add(NodeType(name="Y", category="", summary="", runtime="mine:Y"))
    registry.add(NodeType(name="Z", category="", summary="old", runtime="mine:Z"))
    registry.add(NodeType(name="Z", category="", summary="new", runtime="other:Z"))
    assert registry.get("Z").summary == "new"
    assert registry.get("Y").name == "X"


def test_a_code_node_has_the_ports_that_its_parameters_name() -> None:
    params = {"source": "y = x", "inputs": ["x"], "outputs": ["y"], "once": True}
    declared = code_type(REGISTRY.get("Code"), "mine", params)
    assert ([port.name for port in declared.inputs], [port.name for port in declared.outputs]) == (["x"], ["y"])
    assert declared.source == CONST
    with pytest.raises(GraphError, match="mine: source is not valid Python"):
        code_type(REGISTRY.get("Code"), "mine", {"source": "y = ("})
