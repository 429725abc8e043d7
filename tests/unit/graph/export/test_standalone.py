"""Programs that stand alone."""

import ast
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from surefoot.envs.builtin.cartpole import CartPoleContinuous
from surefoot.envs.builtin.maze import LongMaze
from surefoot.errors import GraphError
from surefoot.graph.export.script import to_script
from surefoot.graph.export.standalone import to_standalone
from surefoot.graph.import_.program import from_program
from surefoot.graph.run.interpreter import Interpreter
from surefoot.graph.spec.model import Delay, Graph, make_node
from surefoot.graph.spec.text import canonical
from surefoot.graph.templates import NAMES, template

BOUND = {"town": "Scenario", "tools": "QuerySource"}
LONGEST = 2130
"""Lines of the longest program, the hierarchy's; that of one policy has about 1,500, of which the library's are 1,350."""
ALONE = [name for name in NAMES if name not in {*BOUND, "language"}]


@pytest.mark.parametrize("name", ALONE)
def test_a_template_stands_alone_and_comes_back(name: str) -> None:
    graph = template(name)
    text = to_standalone(graph)
    # What is written for this graph is short; the rest are definitions of the library with their docstrings.
    assert text[: text.index("# surefoot.graph.export.program")].count("\n") <= 200
    assert text.count("\n") <= LONGEST
    assert "surefoot" not in {
        n.name for each in ast.walk(ast.parse(text)) if isinstance(each, ast.Import) for n in each.names
    }
    assert not [
        e for e in ast.walk(ast.parse(text)) if isinstance(e, ast.ImportFrom) and "surefoot" in (e.module or "")
    ]
    assert "pickle" not in text.replace("no pickle", "").replace("allow_pickle=False", "")
    for id in graph.nodes:
        assert f"[node {id}]" in text
    assert canonical(from_program(text).graph) == canonical(graph)


@pytest.mark.parametrize(("name", "node"), BOUND.items())
def test_what_is_a_part_of_the_library_does_not_stand_alone_and_says_so(name: str, node: str) -> None:
    with pytest.raises(GraphError, match=f"{node} is a part of surefoot .*export this graph as a script"):
        to_standalone(template(name))


def with_everything_on(graph: Graph) -> Graph:
    """Schedules, a recorder and checkpoints: what makes a program longer."""
    moving = {"lr": "lin_1e-3", "clip": "lin_0.2", "ent_coef": "lin_0.01"}
    graph.nodes["trainer"].params |= make_node("PPOTrainerNode", **moving).params
    graph.add("record", "Recorder")
    graph.connect("trainer.loss_info", "record.loss_info")
    graph.connect("trainer.episodes", "record.episodes")
    graph.add("keep", "Checkpoint")
    graph.connect("trainer.training_complete", "keep.trigger")
    graph.connect("trainer.learner", "keep.learner")
    graph.run.path = "torch"
    return graph


def test_a_hierarchy_stands_alone_with_everything_else_on_and_comes_back() -> None:
    graph = with_everything_on(template("hierarchical"))
    moving = {"lr": "cos_1e-3", "ent_coef": "lin_0.02", "gamma": 0.98}
    graph.nodes["high"].params |= make_node("HighLevelPPO", **moving).params
    graph.nodes["goal"].params |= {"env_share": 0.25, "near": 1.0}
    text = to_standalone(graph)
    assert text.count("\n") <= LONGEST
    result = from_program(text)
    assert canonical(result.graph) == canonical(graph)
    assert result.notes == []


@pytest.mark.parametrize(
    ("node", "param", "value", "message"),
    [
        ("env", "env_id", "surefoot/Maze-v0", "env: only a maze of up to nine rooms"),
        ("goal", "goals", "offsets", "goal: goals='offsets'"),
        ("low", "normalize_obs", True, "low: normalize_obs"),
        ("low", "deterministic", True, "low: deterministic=True"),
        ("high", "rollout_steps", 32, "high: rollout_steps=32"),
        ("trainer", "normalize_reward", True, "trainer: normalize_reward"),
    ],
)
def test_what_of_a_hierarchy_does_not_stand_alone_is_named(node: str, param: str, value: object, message: str) -> None:
    graph = template("hierarchical")
    graph.nodes[node].params[param] = value
    if param == "env_id":
        graph.nodes["low"].params["input_size"] = {"goal": 2, "obs": 26}
    with pytest.raises(GraphError, match=f"{message}.*export this graph as a script"):
        to_standalone(graph)


def test_two_policies_that_are_wired_otherwise_do_not_stand_alone() -> None:
    graph = template("hierarchical")
    graph.disconnect("high.trigger")
    with pytest.raises(GraphError, match="wiring of two policies cannot be standalone"):
        to_standalone(graph)


def space_of(text: str) -> dict:
    """The names that a program defines."""
    module = ModuleType("alone")
    sys.modules["alone"] = module  # dataclasses look there
    exec(text, module.__dict__)
    return module.__dict__


def test_the_maze_in_the_program_is_the_library_s_own() -> None:
    theirs, ours = space_of(to_standalone(template("hierarchical")))["LongMaze"](), LongMaze()
    assert theirs.layout == ours.layout
    assert np.array_equal(theirs.landmarks, ours.landmarks)
    assert theirs.max_episode_steps == ours.max_episode_steps


@pytest.mark.parametrize("network", ["gru", "lstm"])
def test_a_memory_stands_alone_with_everything_else_on_and_comes_back(network: str) -> None:
    graph = template("mujoco")  # normalises observations and rewards, and its actions are numbers
    graph.nodes["agent"].params["network"] = network
    graph.connect("step.dones", "agent.starts", Delay())
    text = to_standalone(with_everything_on(graph))
    assert text.count("\n") <= LONGEST
    assert f"def _{network}(" in text
    result = from_program(text)
    assert canonical(result.graph) == canonical(graph)
    assert result.notes == []


@pytest.mark.parametrize(
    ("size", "message"), [({"obs": 4}, "one row of numbers or one picture"), ((4,), "not the picture")]
)
def test_only_what_the_environment_shows_in_one_piece_stands_alone(size: object, message: str) -> None:
    graph = template("cartpole")
    graph.nodes["agent"].params |= {"network": "cnn", "input_size": size}
    with pytest.raises(GraphError, match=f"agent: .*{message}.*export this graph as a script"):
        to_standalone(graph)


def test_what_does_not_stand_alone_is_named() -> None:
    with pytest.raises(GraphError, match="env: Scenario is a part of surefoot"):
        to_standalone(template("town"))
    graph = template("cartpole")
    graph.nodes["trainer"].params["clip"] = 0.1
    graph.add("eval", "Evaluation", env_id="CartPole-v1")
    graph.connect("trainer.training_complete", "eval.trigger")
    graph.connect("agent.model", "eval.model")
    with pytest.raises(GraphError, match="eval: Evaluation cannot be part of a standalone program"):
        to_standalone(graph)
    assert "eval_(trigger=trainer_training_complete, model=agent_model)" in to_script(graph)


def test_the_inlined_task_is_the_library_s_own() -> None:
    ours = CartPoleContinuous()
    theirs = space_of(to_standalone(template("cartpole_ppo")))["CartPoleContinuous"]()
    state = ours.start(np.random.default_rng(0), 5)
    action = np.linspace(-1, 1, 5, dtype=np.float32)[:, None]
    for a, b in zip(ours.advance(state, action, None), theirs.advance(state, action, None), strict=True):
        assert np.array_equal(a, b)


def test_scaled_actions_stand_alone_with_the_weights_of_the_interpreter(tmp_path: Path) -> None:
    """An imported workflow limits the push by a factor; its program must train the same network."""
    graph = template("cartpole_ppo")
    graph.nodes["action"].params = {"mode": "scale", "factor": 0.025, "low": -0.025, "high": 0.025}
    graph.run.total_steps, graph.run.path = 2048, "torch"
    text = to_standalone(graph)
    assert canonical(from_program(text).graph) == canonical(graph)
    program = space_of(text)
    trainers = program["train"](program["Config"]())
    with Interpreter(graph, into=tmp_path) as run:
        run.run()
        ours = {n.removeprefix("network."): x for n, x in run.nodes["agent"].state_dict().items()}
    theirs = trainers["agent"].policy.state_dict()
    assert set(theirs) == set(ours)
    assert all(np.array_equal(theirs[name].numpy(), ours[name].numpy()) for name in ours)
