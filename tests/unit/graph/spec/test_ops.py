"""The operation log: every change knows its undoing, and the file is the graph."""

import pytest

from surefoot.errors import GraphError
from surefoot.graph.spec.ops import History, apply
from surefoot.graph.spec.text import canonical, to_json
from surefoot.graph.templates import template


def test_each_operation_is_taken_back_to_the_byte() -> None:
    graph = template("cartpole")
    for op in (
        {"op": "remove", "id": "agent"},
        {"op": "set", "id": "trainer", "params": {"epochs": 3, "target_kl": 0.1}, "unset": ["lam"]},
        {"op": "move", "id": "env", "at": [1, 2]},
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
    [{"op": "explode"}, {}, {"op": "add"}, {"op": "move", "id": "env", "at": 3}, {"op": "connect", "from": 1, "to": 2}],
)
def test_a_senseless_operation_is_a_graph_error(op) -> None:
    with pytest.raises((GraphError, AttributeError)):
        apply(template("cartpole"), op)


def test_a_killed_editor_loses_at_most_the_line_it_was_writing(tmp_path) -> None:
    file = tmp_path / "log.ndjson"
    history = History(template("cartpole"), file)
    history.do({"op": "set", "id": "trainer", "params": {"epochs": 3}})
    history.do({"op": "remove", "id": "print"})
    history.undo()
    kept = canonical(history.graph)
    with open(file, "a") as log:
        log.write('{"op": "remove", "id": "en')
    again = History(file=file)
    assert canonical(again.graph) == kept
    assert again.redo()
    assert "print" not in again.graph.nodes
    assert again.undo()
    assert again.undo()
    assert not again.undo()
    assert canonical(again.graph) == canonical(template("cartpole"))


def test_another_graph_in_its_place_can_be_taken_back() -> None:
    history = History(template("cartpole"))
    before = canonical(history.graph)
    history.do({"op": "replace", "graph": to_json(template("pendulum"))})
    assert canonical(history.graph) == canonical(template("pendulum"))
    history.undo()
    assert canonical(history.graph) == before
