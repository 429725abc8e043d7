"""Graphs built with add, connect, disconnect and remove."""

import pytest

from surefoot.errors import GraphError
from surefoot.graph.spec.model import ABSENT, Absent, End, Graph, as_end, require_name
from surefoot.graph.templates import template


def test_an_input_has_one_edge() -> None:
    graph = template("cartpole")
    with pytest.raises(GraphError, match="use a Batch .* or an OR"):
        graph.connect("env.observations", "agent.observations")
    with pytest.raises(GraphError, match="there is no node 'ghost'"):
        graph.connect("ghost.x", "agent.observations")
    with pytest.raises(GraphError, match="already"):
        Graph(nodes=graph.nodes).add("env", "OR")


def test_removing_a_node_removes_its_edges_and_its_position() -> None:
    graph = template("cartpole")
    graph.remove("agent")
    assert "agent" not in graph.layout
    assert not [edge for edge in graph.edges if "agent" in (edge.source.node, edge.target.node)]
    with pytest.raises(GraphError, match="no node 'agent'; the graph has"):
        graph.remove("agent")


def test_a_copy_shares_nothing_that_changes() -> None:
    graph = template("cartpole")
    copy = graph.copy()
    copy.nodes["trainer"].params["epochs"] = 1
    copy.run.seed = 5
    copy.disconnect("agent.observations")
    assert graph.sha256() == template("cartpole").sha256() != copy.sha256()


def test_ends_and_names_are_checked() -> None:
    assert as_end("a.b") == End("a", "b")
    for text in ("a", ".b", "a."):
        with pytest.raises(GraphError, match="write node.port"):
            as_end(text)
    for name in ("", "a b", "1st", "x" * 65, 3):
        with pytest.raises(GraphError, match="letters, digits and _"):
            require_name(name, "a node")
    assert Absent() is ABSENT


@pytest.mark.parametrize("name", ["__proto__", "constructor", "toString", "__x"])
def test_names_that_every_javascript_object_has_are_refused(name: str) -> None:
    with pytest.raises(GraphError, match="reserved name"):
        Graph().add(name, "OR")
