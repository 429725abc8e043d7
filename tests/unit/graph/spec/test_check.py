"""What a check finds, and where it pins it."""

from pathlib import Path

import pytest

from surefoot.graph.spec.check import check
from surefoot.graph.spec.model import ABSENT, Delay, Edge, End, Graph, Node
from surefoot.graph.spec.types import CONST, ONCE, Type, every
from surefoot.graph.templates import NAMES, template


def only(graph: Graph):
    (result,) = check(graph).errors
    return result


def undelay(graph: Graph, target: str) -> None:
    edge = graph.disconnect(target)
    graph.connect(edge.source, edge.target)


@pytest.mark.parametrize("name", NAMES)
def test_every_template_holds_together(name: str) -> None:
    assert check(template(name)).findings == []


def test_rates_shapes_and_order_are_worked_out() -> None:
    result = check(template("cartpole"))
    assert result.order == ["env", "either", "agent", "action", "step", "trainer", "print"]
    assert str(result.types[End("env", "observations")]) == "obs {obs [8, 4] float32} raw"
    assert result.types[End("action", "actions")] == Type("tensor", "int64", (8,), choices=(2,))
    assert result.clocks[End("env", "observations")] == ONCE
    assert result.clocks[End("env", "sim_handle")] == CONST
    assert result.clocks[End("trainer", "training_complete")] == every(32)
    assert result.fires["print"] == every(32)
    assert result.to_json()["outputs"]["step.rewards"]["clock"] == "tick"


def test_a_cycle_without_a_delay_is_pinned_on_its_nodes() -> None:
    graph = template("cartpole")
    undelay(graph, "either.b")
    result = only(graph)
    assert result.code == "cycle"
    assert set(result.nodes) == {"either", "agent", "action", "step"}
    assert "Put a delay" in result.message


def test_a_delay_with_nothing_to_say_first_is_only_for_an_or() -> None:
    graph = template("cartpole")
    edge = graph.disconnect("step.actions")
    graph.connect(edge.source, edge.target, Delay(ABSENT))
    result = only(graph)
    assert (result.node, result.port, result.code) == ("step", "actions", "no-initial")


def test_a_delay_on_observations_cannot_start_with_a_number() -> None:
    graph = template("cartpole")
    undelay(graph, "either.b")
    edge = graph.disconnect("either.b")
    graph.connect(edge.source, edge.target, Delay(3))
    assert (only(graph).node, only(graph).port) == ("either", "b")
    assert only(graph).message.startswith("its delay starts with 3, which is not observations; remove the first value")
    graph.disconnect("either.b")
    graph.connect(edge.source, edge.target, Delay([0] * 100_000))
    assert len(only(graph).message) < 1000, "a file may hold any value; a page shows every message"


def test_a_wrong_connection_says_why_and_what_would_fit() -> None:
    graph = template("cartpole")
    graph.disconnect("trainer.rewards")
    graph.connect("agent.model", "trainer.rewards")
    result = only(graph)
    assert (result.node, result.port) == ("trainer", "rewards")
    assert "takes an array but gets a network" in result.message
    assert "step.rewards" in result.message


def test_a_wrong_size_is_said_with_the_right_one() -> None:
    graph = template("cartpole")
    graph.nodes["agent"].params["input_size"] = 5
    result = only(graph)
    assert (result.node, result.port) == ("agent", "input_size")
    assert "set it to 4" in result.message


def test_choices_for_a_world_of_numbers_are_refused_at_the_step() -> None:
    graph = template("pendulum")
    graph.nodes["agent"].params["action_space"] = "discrete"
    graph.nodes["action"].params["mode"] = "none"
    result = only(graph)
    assert (result.node, result.port) == ("step", "actions")
    assert 'action_space="continuous"' in result.message


def test_learning_from_other_numbers_than_the_policy_saw_is_refused() -> None:
    graph = template("cartpole")
    graph.add("norm", "ObservationNormalizer")
    graph.disconnect("agent.observations")
    graph.connect("either.output", "norm.observations")
    graph.connect("norm.observations", "agent.observations")
    result = only(graph)
    assert (result.node, result.port) == ("trainer", "states")
    assert "normalised" in result.message
    assert "raw" in result.message


def test_a_row_of_one_choice_is_not_a_choice_and_two_by_two_numbers_are_not_four() -> None:
    graph = template("cartpole")
    graph.nodes["agent"].params["output_size"] = (2,)
    assert (only(graph).node, only(graph).port) == ("step", "actions")
    graph = template("cartpole")
    graph.nodes["agent"].params["input_size"] = (2, 2)
    assert only(graph).message == "input_size is (2, 2) but the observations are 4; set it to 4"


def test_what_is_missing_unknown_or_doubled_is_named() -> None:
    graph = template("cartpole")
    graph.disconnect("agent.observations")
    assert (only(graph).node, only(graph).port, only(graph).code) == ("agent", "observations", "unconnected")
    graph = template("cartpole")
    graph.nodes["x"] = Node("PPOAgnetNode")
    assert "PPOAgentNode" in only(graph).message
    graph = template("cartpole")
    graph.edges.append(Edge(End("env", "observations"), End("agent", "observations")))
    assert only(graph).code == "two-sources"
    # The page about graphs gives the same advice.
    advice = (
        "use a Batch for rows side by side, such as several environments of one agent, or an OR for one value at a time"
    )
    assert advice in only(graph).message
    page = (Path(__file__).parents[4] / "docs" / "explain" / "graphs.md").read_text(encoding="utf-8")
    assert "To connect several environments to one agent use Batch, not OR" in page
    graph = template("cartpole")
    graph.edges.append(Edge(End("env", "nothing"), End("print", "value")))
    assert "it has sim_handle, observations" in only(graph).message
    graph = template("cartpole")
    del graph.nodes["agent"].params["input_size"]
    assert "must be set" in only(graph).message


def test_dones_alone_get_a_lint_that_says_what_is_lost() -> None:
    graph = template("cartpole")
    for port in ("terminated", "truncated", "next_states"):
        graph.disconnect(f"trainer.{port}")
    graph.connect("step.dones", "trainer.dones")
    result = check(graph)
    assert result.errors == []
    assert {lint.port for lint in result.lints} == {"dones", "next_states"}
    assert "time limit" in next(lint for lint in result.lints if lint.port == "dones").message
    graph.disconnect("trainer.dones")
    assert only(graph).port == "terminated"


def priority(queue: bool) -> Graph:
    graph = template("cartpole")
    graph.add("merge", "OR", mode="priority", queue=queue)
    graph.connect("trainer.training_complete", "merge.a")
    graph.add("other", "Condition", test="above", limit=0.0)
    graph.add("pick", "Pick", key="loss")
    graph.connect("trainer.loss_info", "pick.table")
    graph.connect("pick.value", "other.value")
    graph.connect("other.trigger", "merge.b")
    return graph


def test_two_values_that_can_meet_in_an_or_are_an_error_unless_one_may_wait() -> None:
    result = only(priority(queue=False))
    assert (result.node, result.port) == ("merge", "b")
    assert "set queue to true" in result.message
    assert check(priority(queue=True)).errors == []


def test_an_or_of_two_full_rates_would_pile_up() -> None:
    graph = template("cartpole")
    graph.add("merge", "OR", mode="priority", queue=True)
    graph.connect("step.rewards", "merge.a")
    graph.connect("step.rewards", "merge.b")
    assert "pile up" in only(graph).message


def test_arrival_is_marked() -> None:
    graph = priority(queue=False)
    graph.nodes["merge"].params["mode"] = "arrival"
    assert [lint.node for lint in check(graph).lints] == ["merge"]


def test_inputs_of_two_rates_are_refused() -> None:
    graph = template("cartpole")
    graph.add("sum", "Math")
    graph.add("pick", "Pick", key="loss")
    graph.connect("trainer.loss_info", "pick.table")
    graph.connect("step.rewards", "sum.a")
    graph.connect("pick.value", "sum.b")
    assert "both must arrive together" in only(graph).message


def test_an_unknown_environment_and_isaac_say_what_would_help() -> None:
    graph = template("cartpole")
    graph.nodes["env"].params["env_id"] = "CartPool-v1"
    assert "CartPole-v1" in only(graph).message
    graph.nodes["env"].params |= {"env_id": "Isaac-Ant-v0", "backend": "isaaclab"}
    assert "pip install isaaclab" in only(graph).message
