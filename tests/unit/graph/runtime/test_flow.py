"""OR, Batch and Split."""

import numpy as np
import pytest

from surefoot.errors import GraphError
from surefoot.graph.runtime.flow import (
    BatchNode,
    ConditionNode,
    FlagConstantNode,
    MathNode,
    ORNode,
    PickNode,
    SplitNode,
)


def test_fby_gives_the_first_value_and_then_the_loop() -> None:
    either = ORNode()
    assert [either("a"), either("x", "b"), either("x", "c")] == ["a", "b", "c"]


def test_nothing_is_lost_in_an_or_with_a_queue_and_two_at_once_without_one_are_an_error() -> None:
    either = ORNode(mode="priority", queue=True)
    out = [either(1, 2), either(None, None), either(None, 3), either()]
    assert out == [1, 2, 3, None]
    with pytest.raises(GraphError, match="queue"):
        ORNode(mode="priority")(1, 2)
    assert ORNode(mode="priority")(None, 5) == 5


def test_a_batch_and_its_split_are_inverse() -> None:
    a, b = {"obs": np.arange(6.0).reshape(2, 3)}, {"obs": np.ones((1, 3))}
    parts = SplitNode(sizes=(2, 1))(BatchNode()(a, b))
    assert np.array_equal(parts[0]["obs"], a["obs"])
    assert np.array_equal(parts[1]["obs"], b["obs"])


def test_math_uses_its_parameter_if_b_is_not_connected() -> None:
    assert MathNode(operation="subtract", other=2.0)(5.0) == 3.0
    assert MathNode(operation="subtract", other=2.0)(5.0, 1.0) == 4.0
    assert MathNode(operation="mean")(np.array([1.0, 2.0, 6.0])) == 3.0
    assert np.isinf(MathNode(operation="divide", other=0.0)(1.0))


def test_a_condition_fires_strictly_beyond_its_limit() -> None:
    above, below = ConditionNode(limit=1.0), ConditionNode(limit=1.0, test="below")
    assert [above(x) for x in (0.5, 1.0, 1.5)] == [None, None, "complete"]
    assert [below(x) for x in (0.5, 1.0, 1.5)] == ["complete", None, None]


def test_a_missing_entry_of_a_table_is_none_and_a_constant_is_its_parameter() -> None:
    assert PickNode(key="loss")({"loss": 0.5}) == 0.5
    assert PickNode(key="loss")({}) is None
    assert FlagConstantNode(value=True)() is True
