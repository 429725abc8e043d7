"""The operation log: every change knows its undoing, and the file is the graph."""

import pytest

from surefoot.errors import GraphError
from surefoot.graph.spec.ops import apply
from surefoot.graph.spec.text import canonical
from surefoot.graph.templates import template


def test_each_operation_is_taken_back_to_the_byte() -> None:
    graph = template("cartpole")
    for op in (
        {"op": "remove", "id": "agent"},
        {"op": "set", "id": "trainer", "params": {"epochs": 3, "target_kl": 0.1}, "unset": ["lam"]},
        {"op": "move", "id": "env", "at": [1, 2]},
        {"op": "mode", "id": "print", "mode": "mute"},
        {"op": "frame", "id": "note", "frame": {"text": "acts", "at": [0, 0], "size": [300, 200]}},
        {"op": "rename", "id": "agent", "to": "lambda_"},
        {"op": "run", "settings": {"seed": 9}},
        {"op": "title", "name": "n", "about": "x"},
        {"op": "disconnect", "to": "either.b"},
        {"op": "define", "name": "part", "graph": {"nodes": {}}},
        {"op": "batch", "ops": [{"op": "add", "id": "k", "type": "IntConstant", "params": {"value": 3}, "at": [0, 0]}]},
    ):
        before = canonical(graph)
        back = apply(graph, op)
        assert canonical(graph) != before, op
        apply(graph, back)
        assert canonical(graph) == before, op


def test_a_batch_that_fails_halfway_changes_nothing() -> None:
    graph = template("cartpole")
    before = canonical(graph)
    with pytest.raises(GraphError, match="no node 'ghost'"):
        apply(graph, {"op": "batch", "ops": [{"op": "remove", "id": "env"}, {"op": "remove", "id": "ghost"}]})
    assert canonical(graph) == before


@pytest.mark.parametrize(
    "op",
    [
        {"op": "explode"},
        {},
        {"op": "add"},
        {"op": "move", "id": "env", "at": 3},
        {"op": "connect", "from": 1, "to": 2},
        {"op": "mode", "id": "env", "mode": "x"},
        {"op": "frame", "id": "n", "frame": {"at": [0], "size": [1, 1]}},
    ],
)
def test_a_senseless_operation_is_a_graph_error(op) -> None:
    with pytest.raises((GraphError, AttributeError)):
        apply(template("cartpole"), op)
