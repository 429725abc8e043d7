"""The doctor's advice as a change to the graph."""

import pytest

from surefoot.errors import GraphError
from surefoot.graph.templates import template
from surefoot.server.studio.doctor_fixes import pinned_on, remedy


def test_the_doctors_advice_goes_to_the_node_that_has_the_setting() -> None:
    graph = template("cartpole")
    assert remedy(graph, {"lr": 1e-4}) == {"op": "set", "id": "trainer", "params": {"lr": 1e-4}}
    both = remedy(graph, {"normalize_obs": True, "normalize_reward": True, "curiosity": "rnd"})
    assert [op["id"] for op in both["ops"]] == ["agent", "trainer"]
    assert pinned_on(graph, {"normalize_obs": True}) == "agent"
    assert pinned_on(graph, {"curiosity": "rnd"}) == "trainer"
    with pytest.raises(GraphError, match="no node of this graph has the setting curiosity"):
        remedy(graph, {"curiosity": "rnd"})
