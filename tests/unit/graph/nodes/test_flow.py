"""Types and clocks of OR, Batch, Split and arithmetic."""

import pytest

from surefoot.graph.nodes.flow import NODES
from surefoot.graph.spec.declare import Misfit
from surefoot.graph.spec.params import complete_params
from surefoot.graph.spec.types import CONST, ONCE, TICK, Clock, Type, every, tensor


def outputs(name: str, inputs: dict[str, Type], **params: object) -> dict[str, Type]:
    return NODES[name].outputs_of(complete_params(NODES[name], params), inputs)


def clocks(inputs: dict[str, Clock], **params: object) -> dict[str, Clock]:
    return NODES["OR"].clocks_of(complete_params(NODES["OR"], params), inputs)[1]


def test_an_or_needs_two_sources_of_one_type() -> None:
    with pytest.raises(Misfit, match="connect another one"):
        outputs("OR", {"a": tensor("float32", 8)})
    with pytest.raises(Misfit, match="must have the same type"):
        outputs("OR", {"a": tensor("float32", 8), "b": Type("trigger")})
    assert outputs("OR", {"a": Type(), "b": tensor("float32", 8)})["output"] == tensor("float32", 8)


def test_the_first_value_of_an_or_comes_once() -> None:
    assert clocks({"a": ONCE, "b": TICK}) == {"output": TICK}
    with pytest.raises(Misfit, match="its clock is tick"):
        clocks({"a": TICK, "b": TICK})


def test_priority_refuses_values_that_meet_or_pile_up() -> None:
    with pytest.raises(Misfit, match="set queue to true"):
        clocks({"a": every(2), "b": every(3)}, mode="priority")
    assert clocks({"a": every(2), "b": every(3)}, mode="priority", queue=True)["output"].kind == "when"
    with pytest.raises(Misfit, match="1.5 values arrive"):
        clocks({"a": TICK, "b": every(2)}, mode="priority", queue=True)


def test_a_batch_adds_rows_and_a_split_needs_all_of_them() -> None:
    assert outputs("Batch", {"a": tensor("float32", 8, 4), "b": tensor("float32", 2, 4)})["output"].shape == (10, 4)
    with pytest.raises(Misfit, match="same rows"):
        outputs("Batch", {"a": tensor("float32", 8, 4), "b": tensor("float32", 2, 3)})
    parts = outputs("Split", {"value": tensor("float32", 10, 4)}, sizes=[8, 2])
    assert (parts["a"].shape, parts["b"].shape) == ((8, 4), (2, 4))
    with pytest.raises(Misfit, match="9 in total, but the value has 10 rows"):
        outputs("Split", {"value": tensor("float32", 10, 4)}, sizes=[8, 1])


def test_a_mean_is_a_number_and_a_sum_with_an_array_is_an_array() -> None:
    assert outputs("Math", {"a": tensor("float32", 8)}, operation="mean")["result"].kind == "number"
    assert outputs("Math", {"a": Type("number"), "b": tensor("float32", 8)})["result"].shape == (8,)
    assert NODES["FloatConstant"].source == CONST
