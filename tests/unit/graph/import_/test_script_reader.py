"""Scripts whose code is read because the graph block is missing."""

import ast

import pytest

from surefoot.errors import GraphError
from surefoot.graph.export.block import split_block
from surefoot.graph.export.script import to_script
from surefoot.graph.import_.script_reader import ScriptReader
from surefoot.graph.spec.model import Graph
from surefoot.graph.spec.text import canonical
from surefoot.graph.templates import template


def read(text: str) -> tuple[Graph, list[str]]:
    return ScriptReader(text, ast.parse(text)).read()


def script(name: str = "cartpole", fuse: bool = False) -> str:
    return split_block(to_script(template(name), fuse=fuse))[0]


def test_delays_held_values_and_layout_are_read_from_the_code() -> None:
    graph, notes = read(script("hierarchical"))
    assert canonical(graph) == canonical(template("hierarchical"))
    assert notes == []


def test_a_config_field_that_no_node_uses_is_reported() -> None:
    _, notes = read(script().replace("    seed: int = 0", "    unused: int = 3\n    seed: int = 0"))
    assert notes == ["Config.unused belongs to no node and is left out"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("print(value=trainer_loss_info)", "print(value=3)", "pass a variable"),
        ("print(value=trainer_loss_info)", "print(value=unknown)", "not the output of a node"),
        ("agent_policy_output, agent_model = agent(", "a, b, c = agent(", "assign the 2 outputs"),
    ],
)
def test_code_that_cannot_be_read_is_an_error_with_its_line(old: str, new: str, message: str) -> None:
    text = script()
    old = old if old in text else old.replace("print(value=trainer_loss_info)", "print_(trainer_loss_info)")
    new = new if "print" not in new else new.replace("print(value=", "print_(")
    assert old in text
    with pytest.raises(GraphError, match=rf"line \d+: .*{message}"):
        read(text.replace(old, new))


def test_rollouts_need_their_six_nodes_in_order() -> None:
    text = script(fuse=True).replace("Rollouts(env, either,", "Rollouts(either, env,")
    with pytest.raises(GraphError, match="Rollouts takes six nodes"):
        read(text)
