"""The graph below a program."""

from surefoot.graph.export.block import split_block, with_graph
from surefoot.graph.spec.text import canonical
from surefoot.graph.templates import template


def test_a_graph_comes_back_from_the_lines_below_a_program_only_while_that_is_as_it_was() -> None:
    graph = template("cartpole")
    graph.about = "two  spaces, a | and ünïcode\u2028" * 20
    text = with_graph("x = 1\n", graph)
    program_text, result, unchanged = split_block(text)
    assert (program_text, unchanged) == ("x = 1\n", True)
    assert result is not None
    assert canonical(result) == canonical(graph)
    assert split_block(text.replace("x = 1", "x = 2"))[2] is False
    assert split_block("x = 1\n") == ("x = 1\n", None, False)
