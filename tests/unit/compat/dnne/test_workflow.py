"""A workflow, as ComfyUI wrote it, becomes a graph that runs."""

import json
from pathlib import Path

import numpy as np
import pytest

from surefoot.compat import dnne
from surefoot.compat.dnne.workflow import from_workflow
from surefoot.errors import GraphError
from surefoot.graph.import_.program import from_json_text
from surefoot.graph.nodes import REGISTRY
from surefoot.graph.run.interpreter import Interpreter
from surefoot.graph.runtime.worlds import ActionProcessorNode
from surefoot.graph.spec.check import check
from surefoot.train.collect.tick_collector import ActionRecord

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
        "print_trainer6": "Print",
        "recorder_trainer6": "Recorder",
    }
    assert nodes["env1"].params == {"env_id": "surefoot/CartPoleContinuous-v0", "num_envs": 1}
    trainer = nodes["trainer6"].params
    assert (trainer["epochs"], trainer["minibatch_size"], trainer["lam"]) == (4, 32, 0.95)
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
        "max_push_effort=10 is kept by the factor 0.025",
        "print_trainer6: added, prints the returns",
        "which the agent acted on",
        "a time limit is not termination",
        "starts with ready",
    ):
        assert message in notes


def _or_inputs_swapped(workflow: dict) -> None:
    for link in workflow["links"]:
        if link[3] == 2:
            link[4] = 1 - link[4]


def _reroute_of_the_observations(workflow: dict) -> None:
    workflow["nodes"].append({"id": 70, "type": "Reroute", "inputs": [{"name": ""}], "outputs": [{"name": ""}]})
    link = next(each for each in workflow["links"] if each[0] == 7)
    workflow["links"] += [[80, link[1], link[2], 70, 0, "*"], [81, 70, 0, link[3], link[4], "*"]]
    workflow["links"].remove(link)


def _widgets_by_name(workflow: dict) -> None:
    workflow["nodes"][0]["widgets_values"] = {"env_name": "Cartpole", "num_envs": 1, "device": "cuda"}


def _as_the_first_editor_saved_it(workflow: dict) -> None:
    """A port of another name, and contexts, which pass through every node of Isaac and carry nothing."""
    env, _, _, step, action, trainer = workflow["nodes"]
    action["inputs"][0]["name"] = "network_output"
    for node in (env, step, action):
        node["inputs"].append({"name": "context", "type": "CONTEXT"})
        node["outputs"].append({"name": "context", "type": "CONTEXT"})
    workflow["links"] += [[90, 1, 2, 4, 3, "CONTEXT"], [91, 4, 5, 5, 1, "CONTEXT"]]
    trainer["widgets_values"] += [False, "epoch", "10"]


def _other_order(workflow: dict) -> None:
    workflow["nodes"].reverse()
    workflow["links"].reverse()


@pytest.mark.parametrize(
    ("change", "note"),
    [
        (_or_inputs_swapped, "either2: env1.observations is the first value"),
        (_reroute_of_the_observations, "its ends are connected directly"),
        (_widgets_by_name, "device='cuda' is left out"),
        (_other_order, "becomes surefoot/CartPoleContinuous-v0"),
        (_as_the_first_editor_saved_it, "env1.context → step4.context is left out"),
        (lambda w: w["nodes"][5].pop("widgets_values"), "agent3: lr=0.0003 is left out"),
        (lambda w: w["nodes"].append({"id": 9, "type": "Note", "widgets_values": ["Read me."]}), "total_steps"),
    ],
)
def test_another_drawing_of_the_same_workflow_is_the_same_graph(change, note: str) -> None:
    found, meant = from_workflow(changed(change)), from_workflow(WORKFLOW)
    assert check(found.graph).errors == []
    assert {(e.source, e.target, e.delay) for e in found.graph.edges} == {
        (e.source, e.target, e.delay) for e in meant.graph.edges
    }
    assert any(note in each for each in found.notes)


def test_comments_and_muted_nodes_of_a_workflow_are_kept() -> None:
    def change(workflow: dict) -> None:
        note = {"id": 9, "type": "Note", "pos": [5, 6], "size": {"0": 200, "1": 90}, "widgets_values": ["Read me."]}
        print_value = {"id": 8, "type": "PrintValue", "mode": 2, "inputs": [{"name": "value", "link": 50}]}
        workflow["nodes"] += [note, print_value]
        workflow["links"].append([50, 4, 1, 8, 0, "*"])

    graph = from_workflow(changed(change)).graph
    assert (graph.frames["note9"].text, graph.frames["note9"].size) == ("Read me.", (200.0, 90.0))
    assert [node.mode for id, node in graph.nodes.items() if id.endswith("8")] == ["mute"]
    assert check(graph).errors == []


def test_a_push_of_at_most_ten_newton_is_an_action_of_a_fortieth() -> None:
    """Isaac multiplies a clipped action by max_push_effort; the environment here multiplies it by 400 N."""
    params = from_workflow(WORKFLOW).graph.nodes["action5"].params
    node = ActionProcessorNode(**params)
    record = ActionRecord(action=np.array([[3.0], [0.5], [-2.0]], np.float32), value=None, log_prob=None, obs={})
    assert np.allclose(400.0 * node(record), [[10.0], [5.0], [-10.0]])
    with pytest.raises(GraphError, match="max_push_effort is -1; it must be above 0"):
        from_workflow(changed(lambda w: w["nodes"][4]["widgets_values"].__setitem__(0, -1)))


def test_the_imported_workflow_learns_on_every_seed_with_what_the_import_sets(tmp_path: Path) -> None:
    """With 64 copies, as in the template cartpole_ppo: five runs of 500,000 steps take five seconds."""
    graph = from_workflow(changed(lambda w: w["nodes"][0]["widgets_values"].__setitem__(1, 64))).graph
    graph.nodes["print_trainer6"].params["enabled"] = False
    assert graph.run.total_steps == 500_000
    for seed in range(5):
        with Interpreter(graph, seed=seed, into=tmp_path / str(seed)) as run:
            *_, last = run
        assert last["return"] > 475.0, seed
        assert (tmp_path / str(seed)).glob("**/telemetry.ndjson")


def test_it_runs_and_learns_from_what_it_saw(tmp_path: Path) -> None:
    with Interpreter(from_workflow(WORKFLOW).graph, total_steps=1_024, path="torch", into=tmp_path) as run:
        assert [info["first_ratio_error"] < 1e-5 for info in run] == [True] * 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w["nodes"][0]["widgets_values"].__setitem__(0, "Ant"), "Isaac task 'Ant' needs Isaac Lab"),
        (lambda w: w["nodes"][0].__setitem__("type", "CameraNode"), "no node called 'CameraNode'"),
        (lambda w: [node.__setitem__("type", "KSampler") for node in w["nodes"]], "no node called 'KSampler'"),
        (
            lambda w: w["nodes"].extend([{"id": 8, "type": "PPOConfig"}, {"id": 9, "type": "IsaacGymEnvs"}]),
            "no nodes called 'IsaacGymEnvs', 'PPOConfig'; a workflow of DNNE has",
        ),
        (lambda w: w.__setitem__("version", 1.0), "it must be 0.4"),
        (lambda w: w["links"].append([99, 1, 0, 77, 0, "X"]), "there is no such node"),
        (lambda w: w["links"].append([99, 1, 1, 2, 0, "X"]), "two sources"),
        (lambda w: w["links"].append("x"), r"must be \[id, from"),
        (lambda w: w["nodes"][5]["inputs"][0].__setitem__("name", "stat"), "no input 'stat'"),
        (lambda w: w["nodes"].append({"id": 1, "type": "ORNode"}), "unique whole numbers"),
        (lambda w: w["nodes"].append({"id": -10, "type": "ORNode"}), "-10; ids must be unique whole numbers from 0"),
        (lambda w: w["nodes"].append({"id": 10**70, "type": "ORNode"}), "unique whole numbers from 0 to"),
        (lambda w: w["nodes"][0].__setitem__("mode", {"a": 1}), r"mode of node 1 is \{'a': 1\}; it must be a number"),
        (lambda w: w["nodes"][2]["widgets_values"].extend([1, 2]), "7 widgets, not 9"),
        (lambda w: w.__setitem__("nodes", {}), "not a ComfyUI workflow"),
    ],
)
def test_a_broken_or_foreign_workflow_is_one_clear_error(change, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        from_workflow(changed(change))


def test_the_format_of_comfyuis_api_is_named_with_what_to_save_instead() -> None:
    dnne.register()
    with pytest.raises(GraphError, match=r"ComfyUI's API format, without positions; save the workflow itself"):
        from_json_text(json.dumps({"3": {"class_type": "PPOAgentNode", "inputs": {"observations": ["2", 0]}}}))


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
