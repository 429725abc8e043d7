"""Programs read back as graphs."""

from pathlib import Path

import pytest

from surefoot.errors import GraphError
from surefoot.graph.export.block import split_block
from surefoot.graph.export.script import to_script
from surefoot.graph.export.standalone import to_standalone
from surefoot.graph.import_.program import from_program, import_program
from surefoot.graph.run.interpreter import Interpreter
from surefoot.graph.spec.check import check
from surefoot.graph.spec.text import canonical
from surefoot.graph.templates import NAMES, template
from surefoot.learn.schedule import Linear


@pytest.mark.parametrize("name", NAMES)
def test_a_template_comes_back_from_its_script(name: str) -> None:
    graph = template(name)
    for fuse in (True, False):
        result = from_program(to_script(graph, fuse=fuse))
        assert canonical(result.graph) == canonical(graph)
        assert result.notes == []


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("fuse", [True, False])
def test_a_script_without_its_graph_is_read_from_its_code(name: str, fuse: bool) -> None:
    graph = template(name)
    result = from_program(split_block(to_script(graph, fuse=fuse))[0])
    assert canonical(result.graph) == canonical(graph)
    assert result.notes == []


def test_a_byte_order_mark_is_no_part_of_a_program(tmp_path: Path) -> None:
    (tmp_path / "marked.py").write_text(to_script(template("cartpole")), encoding="utf-8-sig")
    assert import_program(tmp_path / "marked.py").graph == template("cartpole")


def test_a_program_that_stands_alone_needs_its_graph() -> None:
    with pytest.raises(GraphError, match="graph in the last lines.*is missing.*export the graph again"):
        from_program(split_block(to_standalone(template("cartpole")))[0])


def test_an_edited_value_changes_the_graph_and_an_unknown_line_becomes_code() -> None:
    text = to_script(template("cartpole"), fuse=False)
    edited = text.replace("trainer_epochs: int = 20", "trainer_epochs: int = 7")
    assert from_program(edited).graph.nodes["trainer"].params["epochs"] == 7
    strange = text.replace(
        "        either_b = step_observations\n",
        "        total = step_rewards.sum()\n        either_b = step_observations\n",
    )
    result = from_program(strange)
    code = result.graph.nodes["code_1"]
    assert code.type == "Code"
    assert code.params == {"source": "total = step_rewards.sum()", "inputs": ("step_rewards",), "outputs": ()}
    assert "is not part of a node" in result.notes[0]
    assert [str(edge.source) for edge in result.graph.edges if edge.target.node == "code_1"] == ["step.rewards"]


def test_a_program_that_stands_alone_and_was_changed_by_hand_says_where() -> None:
    text = to_standalone(template("cartpole"))
    result = from_program(
        text.replace("epochs: int = 20", "epochs: int = 3")
        .replace("lr_end: float = 0.0", "lr_end: float = 1e-05")
        .replace("import argparse", "import argparse\nprint('edited')", 1)
    )
    assert result.graph.nodes["trainer"].params["epochs"] == 3
    assert result.graph.nodes["trainer"].params["lr"] == Linear(0.001, 1e-05)
    assert result.graph.nodes["code_1"].params["source"] == "print('edited')"
    assert "was edited" in result.notes[0]
    changed = text.replace("norm = self.optimizer.clip(knobs.max_grad_norm)", "norm = self.optimizer.clip(1.0)")
    line = 1 + changed.splitlines().index("class PolicyTrainer:")
    with pytest.raises(GraphError, match=f"line {line}: .* PolicyTrainer is part of the algorithm.*values of Config"):
        from_program(changed)


# The line before which a script is edited: the last one of a tick.
LAST = "        either_b = step_observations\n"


def edited_script(*lines: str, above: str = "") -> str:
    text = to_script(template("cartpole"), fuse=False)
    assert LAST in text
    body = "".join(f"        {line}\n" for line in lines)
    return text.replace(LAST, body + LAST).replace("@dataclass", f"{above}@dataclass", 1)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("if step_rewards.sum() > 3: break", "'break' outside loop"),
        ("if step_rewards.sum() > 3: continue", "'continue' not properly in loop"),
        ("print(mystery)", "reads 'mystery', which is neither an input nor defined"),
    ],
)
def test_a_line_that_cannot_run_as_a_node_is_named_at_the_import(line: str, message: str) -> None:
    text = edited_script(line)
    number = 1 + text.splitlines().index(f"        {line}")
    with pytest.raises(GraphError, match=f"line {number}: .*{message}"):
        from_program(text)


def test_an_edited_script_that_is_accepted_also_runs() -> None:
    """The added line uses an import and a helper of the program, which the Code node takes along."""
    helper = "import math\n\n\ndef double(x):\n    return math.floor(2 * x)\n\n\n"
    imported = from_program(edited_script("twice = double(step_rewards.sum())", above=helper))
    assert check(imported.graph).errors == []
    with Interpreter(imported.graph, total_steps=256, trust=True) as run:
        assert run.run_to_update()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f(:", "not a Python program"),
        ("print(1)", "no function train"),
        ("def train(config):\n    x = 1\n    for y in z:\n        pass", "not a loop over ticks"),
        ("class Config:\n    a: int = open('x')\ndef train(config):\n    return 1", "nothing is run"),
    ],
)
def test_other_programs_are_refused_and_never_run(text: str, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        from_program(text)


def test_only_the_values_that_were_edited_change() -> None:
    graph = template("pendulum")
    text = to_standalone(graph).replace("hidden: tuple[int, ...] = (64, 64)", "hidden: tuple[int, ...] = (8, 8)")
    result = from_program(text)
    assert result.graph.nodes["agent"].params["hidden"] == (8, 8)
    assert result.graph.nodes["trainer"].params == graph.nodes["trainer"].params
    assert result.notes == []
