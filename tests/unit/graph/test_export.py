"""Programs and pictures of graphs, and the way back."""

import ast
import inspect
import sys
import xml.etree.ElementTree as ET
from types import ModuleType

import numpy as np
import pytest

from surefoot.core import losses
from surefoot.core.advantage import gae
from surefoot.envs.builtin.cartpole import CartPoleContinuous
from surefoot.envs.builtin.maze import LongMaze
from surefoot.errors import GraphError
from surefoot.graph.diff import differences, told
from surefoot.graph.export import program
from surefoot.graph.export.block import split_block, with_graph
from surefoot.graph.export.bundle import _module, bundle
from surefoot.graph.export.names import Names
from surefoot.graph.export.script import to_script
from surefoot.graph.export.standalone import to_standalone
from surefoot.graph.export.svg import to_svg
from surefoot.graph.import_.program import from_program
from surefoot.graph.spec.model import Delay, Graph, make_node
from surefoot.graph.spec.text import canonical
from surefoot.graph.templates import NAMES, template
from surefoot.learn.schedule import Linear

BOUND = {"town": "Scenario", "tools": "QuerySource"}
LONGEST = 2100
"""Lines of the longest program, the hierarchy's; that of one policy has about 1,500, of which the library's are 1,350."""
ALONE = [name for name in NAMES if name not in {*BOUND, "language"}]


@pytest.mark.parametrize("name", NAMES)
def test_a_template_comes_back_from_its_script(name: str) -> None:
    graph = template(name)
    for fuse in (True, False):
        found = from_program(to_script(graph, fuse=fuse))
        assert canonical(found.graph) == canonical(graph)
        assert found.notes == []


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
    moving = {"learning_rate": "lin_1e-3", "clip_param": "lin_0.2", "entropy_coef": "lin_0.01"}
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
    moving = {"learning_rate": "cos_1e-3", "entropy_coef": "lin_0.02", "gamma": 0.98}
    graph.nodes["high"].params |= make_node("HighLevelPPO", **moving).params
    graph.nodes["goal"].params |= {"env_share": 0.25, "near": 1.0}
    text = to_standalone(graph)
    assert text.count("\n") <= LONGEST
    found = from_program(text)
    assert canonical(found.graph) == canonical(graph)
    assert found.notes == []


@pytest.mark.parametrize(
    ("node", "param", "value", "said"),
    [
        ("env", "env_id", "surefoot/Maze-v0", "env: only a maze of up to nine rooms"),
        ("goal", "goals", "offsets", "goal: goals='offsets'"),
        ("low", "normalize_obs", True, "low: normalize_obs"),
        ("low", "deterministic", True, "low: a deterministic agent"),
        ("high", "horizon_length", 32, "high: a horizon_length that is not the trainer's"),
        ("trainer", "normalize_rewards", True, "trainer: normalize_rewards"),
    ],
)
def test_what_of_a_hierarchy_does_not_stand_alone_is_named(node: str, param: str, value: object, said: str) -> None:
    graph = template("hierarchical")
    graph.nodes[node].params[param] = value
    if param == "env_id":
        graph.nodes["low"].params["input_size"] = {"goal": 2, "obs": 26}
    with pytest.raises(GraphError, match=f"{said}.*export this graph as a script"):
        to_standalone(graph)


def test_two_policies_that_are_wired_otherwise_do_not_stand_alone() -> None:
    graph = template("hierarchical")
    graph.disconnect("high.trigger")
    with pytest.raises(GraphError, match="wiring of two policies does not stand alone"):
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
    found = from_program(text)
    assert canonical(found.graph) == canonical(graph)
    assert found.notes == []


@pytest.mark.parametrize(("size", "said"), [({"obs": 4}, "one row of numbers or one picture"), ((2, 2), "no picture")])
def test_only_what_the_environment_shows_in_one_piece_stands_alone(size: object, said: str) -> None:
    graph = template("cartpole")
    graph.nodes["agent"].params |= {"network": "cnn", "input_size": size}
    with pytest.raises(GraphError, match=f"agent: .*{said}.*export this graph as a script"):
        to_standalone(graph)


def test_a_change_in_the_library_changes_the_program(monkeypatch) -> None:
    graph = template("cartpole")
    before = to_standalone(graph)
    for name in ("gae", "clipped_surrogate", "value_loss", "ppo_loss"):
        library = inspect.getsource(getattr(losses, name, gae))
        without_docstrings = [line for line in library.splitlines() if '"""' not in line and "return" in line]
        assert all(line in before for line in without_docstrings), name
    source = inspect.getsource

    def changed(module: object) -> str:
        return source(module).replace("torch.maximum(-advantage", "torch.minimum(-advantage")  # type: ignore[arg-type]

    monkeypatch.setattr(inspect, "getsource", changed)
    _module.cache_clear()
    try:
        after = to_standalone(graph)
    finally:
        _module.cache_clear()
    assert "torch.minimum(-advantage" in after
    assert "torch.minimum(-advantage" not in before


def test_only_methods_that_something_mentions_are_copied_and_docstrings_have_one_line() -> None:
    found = bundle(program.run, imports={}, reading_order=("surefoot",)).definitions
    assert "def recent" not in found  # only a type annotation leads to the log of episodes
    assert "def step" not in found
    assert '"""Read weights and optimiser as `save` wrote them; the streams begin anew."""' in found


def test_a_graph_comes_back_from_the_lines_below_a_program_only_while_that_is_as_it_was() -> None:
    graph = template("cartpole")
    graph.about = "two  spaces, a | and ünïcode\u2028" * 20
    text = with_graph("x = 1\n", graph)
    program_text, found, unchanged = split_block(text)
    assert (program_text, unchanged) == ("x = 1\n", True)
    assert found is not None
    assert canonical(found) == canonical(graph)
    assert split_block(text.replace("x = 1", "x = 2"))[2] is False
    assert split_block("x = 1\n") == ("x = 1\n", None, False)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("fuse", [True, False])
def test_a_script_without_its_graph_is_read_from_its_code(name: str, fuse: bool) -> None:
    graph = template(name)
    found = from_program(split_block(to_script(graph, fuse=fuse))[0])
    assert canonical(found.graph) == canonical(graph)
    assert found.notes == []


def test_a_program_that_stands_alone_needs_its_graph() -> None:
    with pytest.raises(GraphError, match="graph in its last lines is missing.*export the graph again"):
        from_program(split_block(to_standalone(template("cartpole")))[0])


def test_the_plain_loop_is_one_call_and_a_look_inside_makes_it_ticks() -> None:
    graph = template("cartpole")
    assert "Rollouts(env, either, agent, action, step, trainer)" in to_script(graph)
    graph.add("look", "Plot")
    graph.connect("step.rewards", "look.value")
    text = to_script(graph)
    assert "Rollouts" not in text
    assert (
        "for tick in range(ticks_for(config.total_steps, config.env_num_envs, config.trainer_horizon_length)):" in text
    )


def test_an_edited_value_changes_the_graph_and_an_unknown_line_becomes_code() -> None:
    text = to_script(template("cartpole"), fuse=False)
    edited = text.replace("trainer_epochs: int = 20", "trainer_epochs: int = 7")
    assert from_program(edited).graph.nodes["trainer"].params["epochs"] == 7
    strange = text.replace(
        "        either_b = step_observations\n",
        "        total = step_rewards.sum()\n        either_b = step_observations\n",
    )
    found = from_program(strange)
    code = found.graph.nodes["code_1"]
    assert code.type == "Code"
    assert code.params == {"source": "total = step_rewards.sum()", "inputs": ("step_rewards",), "outputs": ()}
    assert "stands for no node" in found.notes[0]
    assert [str(edge.source) for edge in found.graph.edges if edge.target.node == "code_1"] == ["step.rewards"]


def test_a_program_that_stands_alone_and_was_changed_by_hand_says_where() -> None:
    text = to_standalone(template("cartpole"))
    found = from_program(
        text.replace("epochs: int = 20", "epochs: int = 3")
        .replace("learning_rate_end: float = 0.0", "learning_rate_end: float = 1e-05")
        .replace("norm = self.optimizer.clip(knobs.max_grad_norm)", "norm = self.optimizer.clip(1.0)")
    )
    assert found.graph.nodes["trainer"].params["epochs"] == 3
    assert found.graph.nodes["trainer"].params["learning_rate"] == Linear(0.001, 1e-05)
    assert "class PolicyTrainer" in found.graph.nodes["code_1"].params["source"]
    assert "was changed by hand" in found.notes[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def f(:", "not a Python program"),
        ("print(1)", "no function train"),
        ("def train(config):\n    x = 1\n    for y in z:\n        pass", "not one of ticks"),
        ("class Config:\n    a: int = open('x')\ndef train(config):\n    return 1", "nothing is run"),
    ],
)
def test_other_programs_are_refused_and_never_run(text: str, said: str) -> None:
    with pytest.raises(GraphError, match=said):
        from_program(text)


def test_what_does_not_stand_alone_is_named() -> None:
    with pytest.raises(GraphError, match="env: Scenario is a part of surefoot"):
        to_standalone(template("town"))
    graph = template("cartpole")
    graph.nodes["trainer"].params["clip_param"] = 0.1
    graph.add("eval", "Evaluation", env_id="CartPole-v1")
    graph.connect("trainer.training_complete", "eval.trigger")
    graph.connect("agent.model", "eval.model")
    with pytest.raises(GraphError, match="eval: Evaluation does not stand alone"):
        to_standalone(graph)
    assert "eval_(trigger=trainer_training_complete, model=agent_model)" in to_script(graph)


def test_no_name_is_a_keyword_a_builtin_or_given_twice() -> None:
    names = Names("env")
    given = [
        names.new(wanted) for wanted in ("lambda", "print", "env", "env", "config", "__class__", "_", "x", "x", "x")
    ]
    assert len(set(given)) == len(given)
    assert not {"lambda", "print", "env", "config", "__class__", "_"} & set(given)


def test_a_picture_is_well_formed_shows_every_node_and_escapes_its_words() -> None:
    graph = template("multi_env")
    graph.name = "<script>"
    picture = to_svg(graph)
    texts = [each.text for each in ET.fromstring(picture).iter() if each.text]
    assert set(graph.nodes) <= set(texts)
    assert "<script>" not in picture
    assert sum("1 tick" in text for text in texts) == 3
    graph.layout = {}
    ET.fromstring(to_svg(graph))
    ET.fromstring(to_svg(Graph()))


def test_a_difference_is_told_in_a_line() -> None:
    before, after = template("cartpole"), template("cartpole")
    after.nodes["trainer"].params["epochs"] = 3
    after.remove("print")
    after.run.seed = 4
    after.layout["env"] = (9.0, 9.0)
    lines = [told(each) for each in differences(before, after)]
    assert lines == [
        "- node print: Print",
        "~ param trainer.epochs: 20 → 3",
        "- edge print.value: trainer.loss_info",
        "~ run seed: 0 → 4",
    ]
    assert differences(before, before.copy()) == []


def test_the_inlined_task_is_the_library_s_own() -> None:
    ours = CartPoleContinuous()
    theirs = space_of(to_standalone(template("cartpole_ppo")))["CartPoleContinuous"]()
    state = ours.start(np.random.default_rng(0), 5)
    action = np.linspace(-1, 1, 5, dtype=np.float32)[:, None]
    for a, b in zip(ours.advance(state, action, None), theirs.advance(state, action, None), strict=True):
        assert np.array_equal(a, b)
