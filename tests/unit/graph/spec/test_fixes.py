"""Findings are fixed by operations; sizes follow from the environment."""

import pytest

from surefoot.graph.spec.check import check, guess_types
from surefoot.graph.spec.fixes import connected, fix_all, fix_of, inferred_sizes
from surefoot.graph.spec.model import Graph
from surefoot.graph.spec.ops import apply
from surefoot.graph.templates import template


def six_nodes(env: str = "") -> Graph:
    graph = Graph()
    graph.add("env", "Environment", **({"env_id": env} if env else {}))
    for id, type in (("either", "OR"), ("agent", "PPOAgentNode"), ("action", "ActionProcessor"), ("step", "Step")):
        graph.add(id, type)
    graph.add("trainer", "PPOTrainerNode")
    return graph


def fixed(graph: Graph) -> Graph:
    op = fix_all(graph)
    assert op is not None
    apply(graph, op)
    return graph


@pytest.mark.parametrize(
    ("env", "space", "size", "mode"), [("", "discrete", 2, "none"), ("Pendulum-v1", "continuous", 1, "clip")]
)
def test_six_nodes_without_edges_become_the_loop_of_the_templates(env: str, space: str, size: int, mode: str) -> None:
    graph = fixed(six_nodes(env))
    assert check(graph).findings == []
    assert {str(edge) for edge in graph.edges} == {
        str(edge) for edge in template("cartpole").edges if "print" not in str(edge) and ".trigger" not in str(edge)
    }
    agent = graph.nodes["agent"].params
    assert (agent["action_space"], agent["output_size"]) == (space, size)
    assert graph.nodes["action"].params["mode"] == mode
    # Pendulum takes a torque of -2 to 2; a loop that clips at 1 could not swing it up.
    assert graph.nodes["action"].params.get("high", 2.0) == 2.0


@pytest.mark.parametrize(
    "change",
    [
        lambda g: g.nodes["agent"].params.update(output_size=3),
        lambda g: g.nodes["agent"].params.update(input_size=7),
        lambda g: g.nodes["agent"].params.update(action_space="continuous"),
        lambda g: g.nodes["agent"].params.update(lr=0.5),
        lambda g: g.nodes["agent"].params.update(hidden=(10**9, 10**9)),
        lambda g: g.nodes["action"].params.update(mode="clip"),
        lambda g: g.nodes["trainer"].params.update(epochs=10**9),
        lambda g: g.nodes["trainer"].params.update(minibatch_size=10**6),
        lambda g: setattr(g.run, "total_steps", 100),
        lambda g: g.disconnect("trainer.next_states"),
        lambda g: (g.disconnect("trainer.terminated"), g.disconnect("trainer.truncated")),
        lambda g: (g.disconnect("trainer.states"), g.connect("step.observations", "trainer.states")),
        lambda g: g.disconnect("either.b"),
        lambda g: g.disconnect("step.sim_handle"),
    ],
)
def test_every_fix_leaves_a_graph_without_findings(change) -> None:
    graph = template("cartpole")
    change(graph)
    assert check(graph).findings != []
    assert check(fixed(graph)).findings == []


def test_sizes_are_set_as_the_environment_is_connected_and_never_overwritten() -> None:
    graph = six_nodes("Pendulum-v1")
    graph.nodes["agent"].params["action_space"] = "discrete"
    for source, target in (("env.observations", "either.a"), ("either.output", "agent.observations")):
        apply(graph, connected(graph, source, target))
    assert graph.nodes["agent"].params == {"action_space": "discrete", "input_size": 3, "output_size": 1}
    assert inferred_sizes(graph) == []


def test_a_new_edge_replaces_the_one_that_an_input_has() -> None:
    graph = template("cartpole")
    apply(graph, connected(graph, "step.next_observations", "trainer.next_states"))
    apply(graph, connected(graph, "step.observations", "trainer.next_states"))
    (edge,) = [each for each in graph.edges if str(each.target) == "trainer.next_states"]
    assert str(edge.source) == "step.observations"


def test_what_only_a_person_can_decide_has_no_fix() -> None:
    graph = template("cartpole")
    graph.nodes["other"] = graph.copy().nodes["step"]
    graph.disconnect("trainer.rewards")
    checked = check(graph)
    finding = next(each for each in checked.findings if each.node == "trainer")
    assert fix_of(graph, finding, guess_types(checked)) is None
