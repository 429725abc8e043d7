"""Statements of Code nodes, looked at without running them."""

import ast

import pytest

from surefoot.graph.spec.code_source import as_function, complete, definitions, interface, problem, undefined


def test_statements_become_a_function_of_their_inputs() -> None:
    space: dict[str, object] = {}
    exec(as_function("c = a + b", ["a", "b"], ["c"]), space)
    assert space["code"](1, 2) == (3,)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("x = 1\ny = [i for i in range(x)]", ""),
        ("def f(a):\n    return f(a - 1) + b\nf(1)", ""),
        ("if b: break", "source is not valid Python: 'break' outside loop"),
        ("x = (", "source is not valid Python: '(' was never closed"),
        ("print(lambda: missing)", "source reads 'missing', which is neither an input nor defined in it"),
        ("return b", "source is not valid Python: 'return' outside function"),
        ("yield b", "source is not valid Python: 'yield' outside function"),
    ],
)
def test_what_cannot_run_is_known_before(source: str, why: str) -> None:
    assert problem(source, ["b"]) == why


@pytest.mark.parametrize(
    "source", ["out = 1", "for out in b: pass", "if b:\n    out = 1", "import math as out", "def out(): pass"]
)
def test_an_output_must_be_set_somewhere(source: str) -> None:
    assert problem(source, ["b"], ["out", "b"]) == ""
    assert problem(source, ["b"], ["other"]) == "source never sets 'other', which is an output"


def test_definitions_are_taken_along_as_far_as_they_are_used() -> None:
    text = "import math\nimport os\ndef half(x):\n    return math.floor(x / 2)\ndef train(c):\n    pass\n"
    defined = definitions(text.splitlines(), ast.parse(text))
    assert set(defined) == {"math", "os", "half"}
    source, why = complete("y = half(3)", [], defined)
    assert (why, undefined(source)) == ("", [])
    assert "import math" in source
    assert "os" not in source
    assert complete("y = other(3)", [], defined)[1].startswith("source reads 'other'")


def test_the_interface_of_a_statement_is_what_it_reads_and_what_calls_read_later() -> None:
    tree = ast.parse("b = a + c\nd = 1\nf(b)")
    assert interface(tree.body[0], {"a"}, tree) == (["a"], ["b"])
    assert interface(tree.body[1], {"a"}, tree) == ([], [])
