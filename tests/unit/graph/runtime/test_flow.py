"""OR, Batch and Split."""

import numpy as np
import pytest

from surefoot.errors import GraphError
from surefoot.graph.runtime.flow import BatchNode, ORNode, SplitNode


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
