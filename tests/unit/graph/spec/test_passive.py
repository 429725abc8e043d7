"""Reroutes, bypassed and muted nodes are edges, or nothing, when a graph runs."""

from pathlib import Path

import pytest

from surefoot.graph.run.interpreter import Interpreter
from surefoot.graph.spec.check import check
from surefoot.graph.spec.model import Delay, Graph
from surefoot.graph.spec.ops import apply
from surefoot.graph.spec.passive import without_passive
from surefoot.graph.spec.subgraphs import group
from surefoot.graph.spec.text import canonical, parse_graph
from surefoot.graph.templates import template


def rerouted(graph: Graph, target: str, id: str) -> Graph:
    edge = graph.disconnect(target)
    graph.add(id, "Reroute")
    graph.connect(edge.source, f"{id}.value")
    graph.connect(f"{id}.value", edge.target, edge.delay)
    return graph


def test_a_reroute_is_an_edge_also_in_a_row_behind_a_delay_and_in_a_group() -> None:
    plain = template("cartpole")
    graph = rerouted(
        rerouted(rerouted(template("cartpole"), "trainer.rewards", "r"), "trainer.rewards", "s"), "either.b", "t"
    )
    assert without_passive(graph).sha256() == plain.sha256()
    assert check(graph).errors == []
    apply(graph, group(graph, ["r", "agent", "s"], "part"))
    assert check(graph).errors == []
    assert len(check(graph).flat.nodes) == len(plain.nodes)


def test_a_bypassed_node_passes_its_input_on_and_a_muted_one_nothing(tmp_path: Path) -> None:
    graph = template("cartpole")
    graph.disconnect("trainer.rewards")
    graph.add("shape", "RewardShaping", scale=0.1)
    graph.connect("step.rewards", "shape.rewards")
    graph.connect("shape.rewards", "trainer.rewards")
    graph.nodes["shape"].mode, graph.nodes["print"].mode = "bypass", "mute"
    again = parse_graph(canonical(graph))
    assert (again.nodes["shape"].mode, again.nodes["print"].mode) == ("bypass", "mute")
    with (
        Interpreter(graph, total_steps=256, into=tmp_path) as run,
        Interpreter(template("cartpole"), total_steps=256) as plain,
    ):
        run.run()
        plain.run()
        assert run.sha256() == plain.sha256()
        assert "shape" not in run.nodes
        assert "print" not in run.nodes


def test_an_input_behind_a_muted_node_says_so() -> None:
    graph = template("cartpole")
    graph.nodes["action"].mode = "mute"
    assert "action is muted or bypassed" in next(f.message for f in check(graph).errors if f.node == "step")


def test_two_delays_through_a_reroute_are_one_error() -> None:
    graph = rerouted(template("cartpole"), "either.b", "r")
    edge = graph.disconnect("r.value")
    graph.connect(edge.source, "r.value", Delay())
    assert "two delays" in check(graph).errors[0].message


@pytest.mark.parametrize("ends", [("r.value", "r.value"), ("s.value", "r.value")])
def test_a_ring_of_reroutes_is_nothing(ends: tuple[str, str]) -> None:
    graph = Graph()
    graph.add("r", "Reroute")
    graph.add("s", "Reroute")
    graph.add("print", "Print")
    graph.connect("r.value", "print.value")
    if ends[0] == "s.value":
        graph.connect("r.value", "s.value")
    graph.connect(*ends)
    assert without_passive(graph).edges == []
