"""The result of a check."""

import pytest

from surefoot.errors import GraphError
from surefoot.graph.spec.check import check
from surefoot.graph.spec.checked import Checked, GraphFinding
from surefoot.graph.spec.model import Graph
from surefoot.graph.templates import template


def test_require_raises_with_the_first_errors() -> None:
    graph = template("cartpole")
    graph.disconnect("agent.observations")
    with pytest.raises(GraphError, match="agent.observations"):
        check(graph).require()


def test_only_three_errors_are_quoted_and_lints_do_not_raise() -> None:
    lint = GraphFinding(level="lint", code="lint", node="a", message="slow")
    assert Checked(Graph(), Graph(), [lint]).require().lints == [lint]
    errors = [GraphFinding(level="error", code="x", node=id, port="p", message="wrong") for id in "abcde"]
    with pytest.raises(GraphError, match=r"^a.p: wrong; b.p: wrong; c.p: wrong \(and 2 more\)$"):
        Checked(Graph(), Graph(), errors).require()
    assert str(lint) == "lint: a: slow"
