"""What the check finds about agents and trainers as a whole."""

import pytest

from surefoot.graph.spec.check import check
from surefoot.graph.spec.checked import GraphFinding
from surefoot.graph.spec.model import Graph
from surefoot.graph.templates import template


def only(graph: Graph) -> GraphFinding:
    (result,) = check(graph).findings
    return result


@pytest.mark.parametrize("wrong", [1, 3])
def test_a_discrete_agent_must_have_as_many_outputs_as_the_environment_has_actions(wrong: int) -> None:
    graph = template("cartpole")
    graph.nodes["agent"].params["output_size"] = wrong
    result = only(graph)
    assert (result.level, result.node, result.port) == ("error", "step", "actions")
    assert f"2 actions but the agent chooses among {wrong}; set output_size of the agent to 2" in result.message


def test_several_environments_are_compared_through_batch_and_split() -> None:
    graph = template("multi_env")
    agent = next(id for id, node in graph.nodes.items() if node.type == "PPOAgentNode")
    graph.nodes[agent].params["output_size"] = 5
    assert {each.port for each in check(graph).errors} == {"actions"}


def test_a_trainer_updates_the_network_that_acted() -> None:
    graph = template("cartpole")
    graph.nodes["second"] = graph.copy().nodes["agent"]
    graph.connect("either.output", "second.observations")
    graph.disconnect("trainer.model")
    graph.connect("second.model", "trainer.model")
    result = only(graph)
    assert (result.level, result.node, result.port) == ("error", "trainer", "model")
    assert result.message.endswith("Connect agent.model")


def test_an_environment_has_one_step_a_network_one_trainer_and_a_folder_one_recorder() -> None:
    def doubled(id: str) -> Graph:
        graph = template("cartpole")
        graph.nodes["second"] = graph.copy().nodes[id]
        for edge in [each for each in graph.edges if each.target.node == id]:
            graph.connect(edge.source, f"second.{edge.target.port}", edge.delay)
        return graph

    for id, message in (
        ("step", "second already steps env; add another Environment"),
        ("trainer", "second already updates agent; a network has one trainer"),
    ):
        assert (only(doubled(id)).level, only(doubled(id)).node, only(doubled(id)).message) == ("error", id, message)
    graph = template("cartpole")
    for id in ("one", "two"):
        graph.add(id, "Recorder", folder="logs")
        graph.connect("trainer.loss_info", f"{id}.loss_info")
    assert only(graph).message == "one already writes to folder 'logs'; choose another folder"
    graph.nodes["two"].params["folder"] = "others"
    assert check(graph).findings == []


def test_states_must_be_what_the_agent_observed() -> None:
    graph = template("cartpole")
    graph.disconnect("trainer.states")
    graph.connect("step.observations", "trainer.states")
    result = only(graph)
    assert (result.level, result.node, result.port) == ("error", "trainer", "states")
    assert result.message.endswith("Connect either.output")


def test_a_rollout_longer_than_the_run_is_a_warning() -> None:
    graph = template("cartpole")
    graph.run.total_steps = 255
    assert "a rollout has 256 steps, more than total_steps=255" in only(graph).message
    assert only(graph).level == "lint"
    graph.run.total_steps = 256
    assert check(graph).findings == []


def test_sizes_that_no_machine_has_are_found_before_the_run() -> None:
    graph = template("cartpole")
    graph.nodes["agent"].params["hidden"] = (10**9, 10**9)
    assert (only(graph).level, only(graph).node, only(graph).port) == ("error", "agent", "hidden")
    graph = template("cartpole")
    graph.nodes["env"].params["num_envs"], graph.nodes["trainer"].params["rollout_steps"] = 65_536, 10**6
    assert {(each.level, each.port) for each in check(graph).findings} == {
        ("error", "rollout_steps"),
        ("lint", "rollout_steps"),
    }
    graph = template("cartpole")
    graph.nodes["trainer"].params["epochs"] = 10**18
    assert (only(graph).level, only(graph).port) == ("lint", "epochs")


def test_an_empty_graph_does_not_hold_together() -> None:
    assert only(Graph()).message == "the graph has no nodes; add an Environment, or start from a template"


def test_two_learning_rates_are_an_error() -> None:
    graph = template("cartpole")
    graph.nodes["agent"].params["lr"] = 0.5
    assert "set it on trainer only" in only(graph).message
