"""What the editor of a workflow draws in more than one way."""

import pytest

from surefoot.compat.dnne.drawing import is_api_format, pair_of, put_first_values_first, remove_reroutes, type_of
from surefoot.graph.spec.model import Edge, End, Graph, Node
from surefoot.graph.templates import template


def test_reroutes_in_a_row_are_one_edge_and_a_ring_of_them_is_none() -> None:
    graph = template("cartpole")
    edge = graph.disconnect("trainer.rewards")
    for id in ("one", "two", "ring"):
        graph.nodes[id] = Node("Reroute")
    graph.edges += [Edge(edge.source, End("one", "value")), Edge(End("one", "value"), End("two", "value"))]
    graph.edges += [Edge(End("two", "value"), edge.target), Edge(End("ring", "value"), End("ring", "value"))]
    assert len(list(remove_reroutes(graph))) == 3
    assert graph.nodes.keys() == template("cartpole").nodes.keys()
    assert {(e.source, e.target) for e in graph.edges} == {(e.source, e.target) for e in template("cartpole").edges}


def test_an_or_begins_with_the_environment() -> None:
    graph = Graph()
    for id, type in (("env", "Environment"), ("step", "Step"), ("either", "OR")):
        graph.nodes[id] = Node(type)
    graph.connect("step.observations", "either.a")
    graph.connect("env.observations", "either.b")
    assert list(put_first_values_first(graph)) == [
        "either: env.observations is the first value; the inputs are in another order"
    ]
    assert {e.target.port: e.source.node for e in graph.edges} == {"a": "env", "b": "step"}
    assert list(put_first_values_first(graph)) == []


@pytest.mark.parametrize(
    ("content", "pair"),
    [
        ([1, 2.5], (1.0, 2.5)),
        ({"0": 1, "1": 2}, (1.0, 2.0)),
        ([1], None),
        (["a", 2], None),
        ([1e999, 2], None),
        ([1e300, 2], None),
        (3, None),
    ],
)
def test_a_position_is_two_finite_numbers(content: object, pair: tuple[float, float] | None) -> None:
    assert pair_of(content) == pair


def test_a_prompt_of_the_api_has_numbered_nodes_with_a_class() -> None:
    assert is_api_format({"3": {"class_type": "KSampler", "inputs": {}}})
    assert not any(is_api_format(each) for each in ({}, {"nodes": []}, {"3": {"class_type": "A"}, "nodes": []}))


def test_the_type_of_a_broken_node_is_text_too() -> None:
    assert [type_of(each) for each in ({"type": "ORNode"}, None, {"type": None})] == ["ORNode", "None", "None"]
