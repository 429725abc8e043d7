"""Groups saved as nodes."""

import pytest

from surefoot.errors import GraphError
from surefoot.graph.spec.check import check
from surefoot.graph.spec.ops import apply
from surefoot.graph.spec.subgraphs import group, within
from surefoot.graph.templates import template
from surefoot.server.studio.saved_nodes import SavedNodes


def test_a_group_with_a_group_inside_is_a_node_with_its_own_ports_in_another_graph(tmp_path) -> None:
    graph, nodes = template("cartpole"), SavedNodes(tmp_path / "nodes")
    apply(graph, group(graph, ["agent", "action"], "brain"))
    apply(graph, within(group(graph.graphs["brain"], ["agent"], "core"), "brain"))
    assert check(graph).errors == []
    nodes.save("brain", graph, "brain", graph)
    (row,) = nodes.to_json()
    assert row == {
        "name": "brain",
        "inputs": ["agent_observations"],
        "outputs": ["action_actions", "agent_model", "agent_policy_output"],
    }
    other = template("cartpole")
    before = check(other).flat.sha256()
    for id in ("agent", "action"):
        other.remove(id)
    apply(other, nodes.added(other, "brain", "mind", [1, 2]))
    for edge in [e for e in graph.edges if "brain" in (e.source.node, e.target.node)]:
        ends = [str(end).replace("brain.", "mind.") for end in (edge.source, edge.target)]
        other.connect(*ends, edge.delay)
    assert check(other).errors == []
    assert len(check(other).flat.nodes) == 7
    assert before != other.sha256()
    # A sub-graph of that name with another content is not touched.
    other.graphs["brain"].nodes.pop("action")
    assert [op["name"] for op in nodes.added(other, "brain", "two")["ops"] if op["op"] == "define"] == ["brain_2"]


def test_only_a_group_is_saved_and_names_are_safe(tmp_path) -> None:
    graph, nodes = template("cartpole"), SavedNodes(tmp_path)
    with pytest.raises(GraphError, match="'agent' is not a group"):
        nodes.save("x", graph, "agent", graph)
    with pytest.raises(GraphError, match="no saved node 'ghost'"):
        nodes.added(graph, "ghost", "g")
    for bad in ("../x", "", "a/b"):
        with pytest.raises(GraphError, match="a saved node is called"):
            nodes.remove(bad)
    (tmp_path / "broken.json").write_text("{}")
    assert nodes.to_json() == []
