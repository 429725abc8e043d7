"""The wirings that exports know."""

import pytest

from surefoot.graph.schedule import schedule
from surefoot.graph.spec.model import Delay, Graph
from surefoot.graph.templates import template
from surefoot.graph.wiring import PLAIN, ROLES, by_role, connect_plain, edges_into, plain_roles, several_edges


def test_the_edges_of_the_plain_loop_are_those_of_the_template() -> None:
    graph = template("cartpole")
    graph.remove("print")
    other = Graph(nodes=graph.nodes)
    connect_plain(other, {role: role for role in ROLES})
    assert {(str(e), e.delay) for e in other.edges} == {(str(e), e.delay) for e in graph.edges}
    assert len(other.edges) == len(PLAIN)


def test_a_node_that_looks_into_a_rollout_makes_it_another_graph() -> None:
    graph = template("cartpole")
    assert plain_roles(schedule(graph)) == {role: role for role in ROLES}
    graph.add("look", "Plot")
    graph.connect("step.rewards", "look.value")
    assert plain_roles(schedule(graph)) is None


@pytest.mark.parametrize(("node", "params"), [("agent", {"deterministic": True}), ("action", {"mode": "clip"})])
def test_parameters_that_the_collector_does_not_know_are_refused(node: str, params: dict[str, object]) -> None:
    graph = template("pendulum" if node == "agent" else "cartpole_ppo")
    graph.nodes[node].params |= params
    assert (plain_roles(schedule(graph)) is None) == (node == "agent")


def test_a_recurrent_agent_needs_the_starts_of_episodes_as_well() -> None:
    graph = template("mujoco")
    graph.nodes["agent"].params["network"] = "gru"
    graph.connect("step.dones", "agent.starts", Delay())
    assert plain_roles(schedule(graph)) is None
    assert plain_roles(schedule(graph), recurrent=True) is not None


def test_several_environments_are_wired_as_in_the_template() -> None:
    plan = schedule(template("multi_env"))
    assert by_role(plan, {"env": "Environment"}) is None
    edges = several_edges(
        [("e", "o", "s")],
        ["r", "t", "u", "n"],
        dict.fromkeys(("obs", "agent", "action", "split"), "x") | {"trainer": "y"},
    )
    assert ("s.observations", "o.b", Delay()) in edges
    assert len(edges_into(plan, ["trainer"])) == 7
