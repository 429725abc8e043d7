"""The operation log: every change knows its undoing, and the file is the graph."""

import pytest

from surefoot.errors import GraphError
from surefoot.graph.spec.check import check
from surefoot.graph.spec.groups import group, ungroup
from surefoot.graph.spec.model import Graph
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


def test_nodes_are_grouped_and_the_group_is_taken_apart_again() -> None:
    graph = template("cartpole")
    before = canonical(graph)
    history = History(graph)
    history.do(group(graph, ["agent", "action"], "brain"))
    found = check(history.graph)
    assert found.errors == []
    assert "brain__agent" in found.order
    meant = template("cartpole").sha256()
    history.do(ungroup(history.graph, "brain"))
    assert history.graph.sha256() == meant
    assert "brain" not in history.graph.graphs
    history.undo()
    history.do({"op": "within", "graph": "brain", "do": {"op": "set", "id": "agent", "params": {"hidden_sizes": [8]}}})
    assert history.graph.graphs["brain"].nodes["agent"].params["hidden_sizes"] == (8,)
    history.undo()
    history.undo()
    assert canonical(history.graph) == before
    with pytest.raises(GraphError, match="not a sub-graph"):
        ungroup(graph, "agent")
    with pytest.raises(GraphError, match="there is no sub-graph"):
        apply(graph, {"op": "within", "graph": "x", "do": {}})
    with pytest.raises(GraphError, match="cannot be made"):
        group(graph, ["ghost"], "x")


def test_an_input_has_one_edge() -> None:
    graph = template("cartpole")
    with pytest.raises(GraphError, match="merge two sources with an OR"):
        graph.connect("env.observations", "agent.observations")
    with pytest.raises(GraphError, match="there is no node 'ghost'"):
        graph.connect("ghost.x", "agent.observations")
    with pytest.raises(GraphError, match="already"):
        Graph(nodes=graph.nodes).add("env", "OR")


def test_another_graph_in_its_place_can_be_taken_back() -> None:
    history = History(template("cartpole"))
    before = canonical(history.graph)
    history.do({"op": "replace", "graph": to_json(template("pendulum"))})
    assert canonical(history.graph) == canonical(template("pendulum"))
    history.undo()
    assert canonical(history.graph) == before
