"""A workflow, as ComfyUI wrote it, becomes a graph that runs."""

import json
from pathlib import Path

import pytest

from surefoot.compat import dnne
from surefoot.compat.dnne.workflow import from_workflow
from surefoot.errors import GraphError
from surefoot.graph.import_.program import from_json_text
from surefoot.graph.nodes import REGISTRY
from surefoot.graph.run.interpreter import Interpreter
from surefoot.graph.spec.check import check

WORKFLOW = (Path(__file__).parents[3] / "samples" / "graph" / "Cartpole_PPO.json").read_text()


def changed(change) -> str:
    told = json.loads(WORKFLOW)
    change(told)
    return json.dumps(told)


def test_six_nodes_come_in_with_their_widgets_and_two_delays() -> None:
    found = from_workflow(WORKFLOW)
    nodes = found.graph.nodes
    assert {id: node.type for id, node in nodes.items()} == {
        "env1": "Environment",
        "either2": "OR",
        "agent3": "PPOAgentNode",
        "step4": "Step",
        "action5": "ActionProcessor",
        "trainer6": "PPOTrainerNode",
    }
    assert nodes["env1"].params == {"env_id": "surefoot/CartPoleContinuous-v0", "num_envs": 1}
    trainer = nodes["trainer6"].params
    assert (trainer["rollout_steps"], trainer["epochs"], trainer["minibatch_size"], trainer["lam"]) == (
        16,
        4,
        32,
        0.95,
    )
    assert nodes["agent3"].params["hidden"] == (64, 64)
    delays = {str(edge): edge.delay.initial for edge in found.graph.edges if edge.delay is not None}
    assert {name: str(value) for name, value in delays.items()} == {
        "step4.observations → either2.b": "ABSENT",
        "trainer6.training_complete → step4.trigger": "ready",
    }
    assert check(found.graph).errors == []


def test_the_notes_list_every_change() -> None:
    notes = "\n".join(from_workflow(WORKFLOW).notes)
    for message in (
        "becomes surefoot/CartPoleContinuous-v0",
        "max_push_effort=10",
        "which the agent acted on",
        "a time limit is not termination",
        "starts with ready",
    ):
        assert message in notes


def test_it_runs_and_learns_from_what_it_saw() -> None:
    with Interpreter(from_workflow(WORKFLOW).graph, total_steps=64, path="torch") as run:
        assert [info["first_ratio_error"] < 1e-5 for info in run] == [True] * 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w["nodes"][0]["widgets_values"].__setitem__(0, "Ant"), "Isaac task 'Ant' needs Isaac Lab"),
        (lambda w: w["nodes"][0].__setitem__("type", "CameraNode"), "no node called 'CameraNode'"),
        (lambda w: w.__setitem__("version", 1.0), "it must be 0.4"),
        (lambda w: w["links"].append([99, 1, 0, 77, 0, "X"]), "there is no such node"),
        (lambda w: w["links"].append([99, 1, 1, 2, 0, "X"]), "two sources"),
        (lambda w: w["links"].append("x"), r"must be \[id, from"),
        (lambda w: w["nodes"][5]["inputs"][0].__setitem__("name", "stat"), "no input 'stat'"),
        (lambda w: w["nodes"].append({"id": 1, "type": "ORNode"}), "unique integers"),
        (lambda w: w["nodes"][2]["widgets_values"].extend([1, 2]), "7 widgets, not 9"),
        (lambda w: w.__setitem__("nodes", {}), "not a ComfyUI workflow"),
    ],
)
def test_a_broken_or_foreign_workflow_is_one_clear_error(change, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        from_workflow(changed(change))


def test_the_names_of_its_nodes_are_known_once_registered_and_are_constructors_here() -> None:
    dnne.register()
    assert dnne.IsaacGymEnvNode(env_name="CartPole-v1").type == "Environment"
    for name, aliases in dnne.ALIASES.items():
        assert all(REGISTRY.get(alias).name == name for alias in aliases)
    assert from_json_text(WORKFLOW).notes == from_workflow(WORKFLOW).notes
    with pytest.raises(AttributeError):
        _ = dnne.NoSuchNode


def test_the_learning_rate_of_the_trainer_is_used_and_that_of_the_agent_is_named() -> None:
    found = from_workflow(WORKFLOW)
    assert "lr" not in found.graph.nodes["agent3"].params
    assert any("that of trainer6 is used" in note for note in found.notes)
