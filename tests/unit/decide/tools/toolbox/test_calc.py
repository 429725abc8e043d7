"""Tests of `surefoot.decide.tools.toolbox.calc`."""

from __future__ import annotations

from fractions import Fraction

import pytest

from surefoot.decide.tools.toolbox.calc import evaluate, find_expression, show
from surefoot.errors import ToolError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1/3 + 1/6", Fraction(1, 2)),
        ("2 ^ 3 ^ 2", Fraction(512)),
        ("-2 ** 2", Fraction(-4)),
        ("0.1 + 0.2", Fraction(3, 10)),
        ("(1 + 2) * -3", Fraction(-9)),
        ("7 % 3 + 5!", Fraction(121)),
        ("1e3 / 8", Fraction(125)),
        ("sqrt 16 + sqrt(9/4)", Fraction(11, 2)),
        ("2 ^ -sqrt 4", Fraction(1, 4)),
        ("(1 + 2)! - 3!", Fraction(0)),
        ("1,000 - -1", Fraction(1001)),
    ],
)
def test_calc_is_exact(text: str, value: Fraction):
    assert evaluate(text) == value


@pytest.mark.parametrize(
    "hostile",
    [
        "9**9**9",
        "10**500",
        "1e999",
        "9" * 450,
        "1/0",
        "(" * 60 + "1" + ")" * 60,
        "2**0.3",
        "171!!",
        "5 % 0",
        "-" * 80 + "1",
        "(1 + 2)(3)",
        "3 4",
        "2 * * 3",
        "(1",
        "! 3",
        "sqrt -4",
    ],
)
def test_calc_refuses_expressions_that_take_too_long(hostile: str):
    with pytest.raises(ToolError):
        evaluate(hostile)


def test_calc_runs_no_code_and_formats_numbers_for_people():
    for text in ("__import__('os').system('ls')", "what is love"):
        with pytest.raises(ToolError):
            evaluate(find_expression(text))
    assert show(Fraction(1, 8)) == "0.125"
    assert show(Fraction(-7, 4)) == "-1.75"
    assert show(Fraction(1, 3)).startswith("0.333333333333 (1/3)")
