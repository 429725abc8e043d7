"""Sub-graphs: flattened for a run, grouped and ungrouped in the editor."""

import pytest

from surefoot.errors import GraphError
from surefoot.graph.spec.check import check
from surefoot.graph.spec.history import History
from surefoot.graph.spec.model import Delay, Edge, End, Graph
from surefoot.graph.spec.ops import apply
from surefoot.graph.spec.subgraphs import flatten, group, ungroup
from surefoot.graph.spec.text import canonical
from surefoot.graph.templates import template


def test_a_subgraph_that_holds_itself_is_one_error() -> None:
    graph = Graph()
    graph.add("a", "SubGraph", graph="inner")
    graph.graphs["inner"] = Graph()
    graph.graphs["inner"].add("b", "SubGraph", graph="inner")
    assert "contains itself" in check(graph).errors[0].message
    graph.graphs = {}
    assert "no sub-graph 'inner'" in check(graph).errors[0].message


def test_nodes_are_grouped_and_the_group_is_taken_apart_again() -> None:
    graph = template("cartpole")
    before = canonical(graph)
    history = History(graph)
    history.do(group(graph, ["agent", "action"], "brain"))
    result = check(history.graph)
    assert result.errors == []
    assert "brain__agent" in result.order
    meant = template("cartpole").sha256()
    history.do(ungroup(history.graph, "brain"))
    assert history.graph.sha256() == meant
    assert "brain" not in history.graph.graphs
    history.undo()
    history.do({"op": "within", "graph": "brain", "do": {"op": "set", "id": "agent", "params": {"hidden": [8]}}})
    assert history.graph.graphs["brain"].nodes["agent"].params["hidden"] == (8,)
    history.undo()
    history.undo()
    assert canonical(history.graph) == before
    with pytest.raises(GraphError, match="not a sub-graph"):
        ungroup(graph, "agent")
    with pytest.raises(GraphError, match="there is no sub-graph"):
        apply(graph, {"op": "within", "graph": "x", "do": {}})
    with pytest.raises(GraphError, match="cannot group ghost"):
        group(graph, ["ghost"], "x")


def doubling() -> Graph:
    """A sub-graph with one input and one output around a node that adds 1."""
    inner = Graph("inner")
    inner.add("in", "Inlet", port="x")
    inner.add("add", "Math", operation="add", other=1.0)
    inner.add("out", "Outlet", port="y")
    inner.connect("in.value", "add.a")
    inner.connect("add.result", "out.value")
    graph = Graph()
    graph.graphs["inner"] = inner
    graph.add("one", "FloatConstant", value=1.0)
    graph.add("twice", "SubGraph", graph="inner")
    graph.add("plot", "Plot")
    graph.connect("one.value", "twice.x")
    graph.connect("twice.y", "plot.value")
    return graph


def test_a_flattened_graph_has_the_inner_nodes_under_both_names() -> None:
    flat = flatten(doubling())
    assert set(flat.nodes) == {"one", "twice__add", "plot"}
    assert {str(edge) for edge in flat.edges} == {"one.value → twice__add.a", "twice__add.result → plot.value"}


def test_ports_that_the_sub_graph_does_not_have_are_named() -> None:
    graph = doubling()
    graph.edges[0] = Edge(End("one", "value"), End("twice", "z"))
    with pytest.raises(GraphError, match="no input 'z'; it has x"):
        flatten(graph)
    graph = doubling()
    graph.graphs["inner"].disconnect("out.value")
    with pytest.raises(GraphError, match="nothing inside is connected to its output 'y'"):
        flatten(graph)


def test_an_edge_through_a_sub_graph_has_at_most_one_delay() -> None:
    graph = doubling()
    inner = graph.graphs["inner"]
    inner.disconnect("add.a")
    inner.connect("in.value", "add.a", Delay(0.0))
    assert next(edge for edge in flatten(graph).edges if edge.target.port == "a").delay == Delay(0.0)
    graph.disconnect("twice.x")
    graph.connect("one.value", "twice.x", Delay(0.0))
    with pytest.raises(GraphError, match="two delays"):
        flatten(graph)


def test_names_that_are_used_already_get_a_number_when_a_sub_graph_is_ungrouped() -> None:
    graph = doubling()
    graph.add("add", "Math")
    apply(graph, ungroup(graph, "twice"))
    assert {"add", "add_2"} <= set(graph.nodes)
    assert {str(edge) for edge in graph.edges} == {"one.value → add_2.a", "add_2.result → plot.value"}
