"""Edges are judged before they are drawn, in graphs that are not finished."""

import pytest

from surefoot.errors import GraphError
from surefoot.graph.spec.fit import fits, join
from surefoot.graph.spec.model import Graph
from surefoot.graph.templates import template


def unfinished() -> Graph:
    graph = Graph()
    graph.add("env", "Environment", env_id="CartPole-v1", num_envs=4)
    graph.add("either", "OR")
    graph.add("agent", "PPOAgentNode", input_size=4, output_size=2, action_space="discrete")
    graph.add("step", "Step")
    graph.add("trainer", "PPOTrainerNode")
    return graph


def test_another_kind_is_refused_with_what_it_takes() -> None:
    graph = unfinished()
    result = fits(graph, "env.sim_handle")
    assert not result["step.sim_handle"].why
    assert "it takes observations but gets an environment" in result["agent.observations"].why
    with pytest.raises(GraphError, match="env.sim_handle does not fit agent.observations"):
        join(graph, "env.sim_handle", "agent.observations")


def test_a_size_that_does_not_fit_is_found_while_half_of_the_graph_is_missing() -> None:
    graph = unfinished()
    graph.nodes["agent"].params["input_size"] = 3
    assert join(graph, "env.observations", "either.a")["op"] == "connect"  # an OR waits for a second source
    graph.connect("env.observations", "either.a")
    with pytest.raises(GraphError, match="input_size is 3 but the observations are 4"):
        join(graph, "either.output", "agent.observations")
    graph.nodes["agent"].params["input_size"] = 4
    assert join(graph, "either.output", "agent.observations")["op"] == "connect"


def test_an_edge_that_goes_back_gets_a_delay() -> None:
    graph = template("cartpole_ppo")
    wanted = {str(edge): edge.delay for edge in graph.edges if edge.delay}
    for edge in [edge for edge in graph.edges if edge.delay]:
        graph.disconnect(edge.target)
        op = join(graph, edge.source, edge.target)
        content = wanted[str(edge)]
        assert op["delay"] == ({"initial": "ready"} if edge.target.port == "trigger" else {})
        assert content is not None
        graph.edges.append(edge)


def test_a_loop_that_no_first_value_could_open_is_refused() -> None:
    graph = template("cartpole_ppo")
    graph.disconnect("agent.observations")
    graph.disconnect("either.b")
    graph.disconnect("trainer.states")
    with pytest.raises(GraphError, match="put an OR in front of agent"):
        join(graph, "step.observations", "agent.observations")


def test_an_input_that_is_taken_says_from_where() -> None:
    graph = template("cartpole")
    assert fits(graph, "env.observations")["agent.observations"].replaces == "either.output"
    with pytest.raises(GraphError, match="connected to either.output"):
        join(graph, "env.observations", "agent.observations")


def test_what_is_not_there_is_named() -> None:
    graph = unfinished()
    for source, target in (("ghost.x", "step.actions"), ("env.x", "step.actions"), ("env.sim_handle", "step.x")):
        with pytest.raises(GraphError, match="there is no node|has no"):
            join(graph, source, target)
