"""`calc`: exact arithmetic on fractions, with limits so that no question can keep the machine busy."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any

from surefoot.data.shipped_yaml import read_shipped
from surefoot.decide.tools.protocol import ToolRequest, ToolResult, object_schema
from surefoot.errors import ToolError

# Far above what people write, and small enough that the slowest expression within them takes milliseconds.
LONGEST, MOST_OPERANDS, MOST_DIGITS, HIGHEST_EXPONENT, DEEPEST = 500, 100, 400, 1000, 30

_TOKEN = re.compile(r"\s*(?:(\d[\d,]*\.?\d*(?:[eE][-+]?\d{1,3})?|\.\d+)|(\*\*|sqrt|[-+*/%^()!]))", re.ASCII)
_WORDS: dict[str, str] = read_shipped("surefoot.decide.tools.toolbox", "calc.yaml")
"""Patterns of words, in lower case, and the signs that replace them."""
# Python's grammar has no factorial and no prefix root: an attribute is the postfix operator, ~ the prefix operator.
_PYTHON = {"^": "**", "!": ".factorial", "sqrt": "~"}
_OPERATIONS: dict[type[ast.operator], Callable[[Fraction, Fraction], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
}
_EXPRESSION = re.compile(r"(?:sqrt\s*)*[-+(]*\s*(?:\d|\.\d)(?:[\d\s.,+\-*/%^()!eE]|sqrt)*", re.ASCII)


class CalcTool:
    """Find the expression in a question and compute it exactly."""

    name = "calc"
    description = "Calculate: exact arithmetic with numbers, plus, minus, times, percent, powers, roots, fractions"
    schema = object_schema({"expression": {"type": "string", "maxLength": LONGEST}}, ["expression"])

    async def call(self, request: ToolRequest) -> ToolResult:
        text = str(request.arguments.get("expression", request.text))
        expression = find_expression(text)
        value = evaluate(expression)
        return ToolResult(text=f"{expression} = {show(value)}", data=str(value), quality=1.0)


def find_expression(text: str) -> str:
    """Return the longest arithmetic expression in a text, with words such as "percent of" replaced by signs."""
    if len(text) > LONGEST:
        raise ToolError(f"the question has {len(text)} characters; calc reads at most {LONGEST}")
    plain = text.lower().replace("$", "").replace("€", "").replace("£", "")
    for pattern, sign in _WORDS.items():
        plain = re.sub(pattern, sign, plain)
    expressions = [match.group().strip().rstrip(",. ") for match in _EXPRESSION.finditer(plain)]
    expressions = [each for each in expressions if re.search(r"\d", each)]
    if not expressions:
        raise ToolError(f"no arithmetic found in {text[:60]!r}; calc needs numbers and signs such as 3 * (4 + 5)")
    with_signs = [each for each in expressions if re.search(r"[-+*/%^!]|sqrt", each.lstrip("-+ "))]
    return max(with_signs or expressions, key=len)


def evaluate(expression: str) -> Fraction:
    """Return the exact value of an expression with + - * / % ^ ** ! sqrt and brackets.

    Python's parser finds the structure; numbers are replaced by names first, and no code is ever run. Roots that are
    not fractions are rounded down to 12 places.
    """
    if len(expression) > LONGEST:
        raise ToolError(f"the expression has {len(expression)} characters; calc reads at most {LONGEST}")
    numbers, tokens, position = list[Fraction](), list[str](), 0
    while position < len(expression.rstrip()):
        match = _TOKEN.match(expression, position)
        if match is None:
            raise ToolError(f"calc cannot read {expression[position:][:20]!r} in {expression!r}")
        number, sign = match.groups()
        tokens.append(_PYTHON.get(sign, sign) if number is None else f"n{len(numbers)}")
        if number is not None:
            numbers.append(_number(number.replace(",", "")))
        position = match.end()
    if len(numbers) > MOST_OPERANDS:
        raise ToolError(f"the expression has {len(numbers)} numbers; calc takes at most {MOST_OPERANDS}")
    if max(accumulate({"(": 1, ")": -1}.get(token, 0) for token in tokens), default=0) > DEEPEST:
        raise ToolError(f"the expression is nested more than {DEEPEST} deep")
    try:
        tree = ast.parse(" ".join(tokens), mode="eval")
    except SyntaxError as error:
        raise ToolError(
            f"calc cannot read {expression!r}: a number, a sign or a bracket is missing or misplaced"
        ) from error
    return _value(tree.body, numbers, expression)


def show(value: Fraction) -> str:
    """Return an integer, a finite decimal, or 12 digits with the fraction in brackets."""
    if value.denominator == 1:
        return str(value.numerator)
    # A fraction is a finite decimal if its denominator divides a power of ten; 2^49 is the last below 10^15.
    places = next((k for k in range(1, 50) if 10**k % value.denominator == 0), None)
    if places is not None and value.denominator < 10**15:
        digits = f"{abs(value.numerator) * 10**places // value.denominator:0{places + 1}d}"
        return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}"
    return f"{float(value):.12g} ({value.numerator}/{value.denominator})"


def _value(node: ast.expr, numbers: Sequence[Fraction], text: str, depth: int = 0) -> Fraction:
    if depth > DEEPEST:
        raise ToolError(f"the expression is nested more than {DEEPEST} deep")
    match node:
        case ast.Name(id=name):
            return numbers[int(name[1:])]
        case ast.Attribute(value=operand):
            value = _value(operand, numbers, text, depth)
            if value.denominator != 1 or not 0 <= value <= 200:
                raise ToolError(f"{value}! is out of range; calc takes factorials of integers from 0 to 200")
            return _capped(Fraction(math.factorial(int(value))))
        case ast.UnaryOp(op=sign, operand=operand):
            value = _value(operand, numbers, text, depth + 1)
            return (
                -value if isinstance(sign, ast.USub) else _root(value, text) if isinstance(sign, ast.Invert) else value
            )
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(_value(left, numbers, text, depth), _value(right, numbers, text, depth + 1), text)
        case ast.BinOp(left=left, op=sign, right=right):
            first, second = _value(left, numbers, text, depth), _value(right, numbers, text, depth)
            if isinstance(sign, ast.Div | ast.Mod) and second == 0:
                raise ToolError(f"{text!r} divides by zero")
            return _capped(_OPERATIONS[type(sign)](first, second))
        case _:
            raise ToolError(f"calc cannot read {text!r}: a sign is missing between two numbers or brackets")


def _number(token: str) -> Fraction:
    """Return the value of a literal; its size is checked before the number is built."""
    mantissa, _, exponent = token.lower().partition("e")
    if len(mantissa) > MOST_DIGITS or (exponent and abs(int(exponent)) > MOST_DIGITS):
        raise ToolError(f"{token[:20]} has more than {MOST_DIGITS} digits")
    return _capped(Fraction(token.rstrip(".") if not exponent else token))


def _capped(value: Fraction) -> Fraction:
    # 3.33 bits per decimal digit.
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MOST_DIGITS * 3.33:
        raise ToolError(f"the result has more than {MOST_DIGITS} digits, which is calc's limit")
    return value


def _power(base: Fraction, exponent: Fraction, text: str) -> Fraction:
    if exponent == Fraction(1, 2):
        return _root(base, text)
    if exponent.denominator != 1:
        raise ToolError(f"{text!r} has the exponent {exponent}; calc is exact and takes integers and 1/2")
    if abs(exponent) > HIGHEST_EXPONENT:
        raise ToolError(f"{text!r} has the exponent {exponent}; calc's limit is {HIGHEST_EXPONENT}")
    if base == 0 and exponent < 0:
        raise ToolError(f"{text!r} divides by zero")
    # Estimated before computing: the power itself could fill the memory.
    bits = max(base.numerator.bit_length(), base.denominator.bit_length()) * abs(int(exponent))
    if bits > MOST_DIGITS * 3.33:
        raise ToolError(f"{text!r} would have more than {MOST_DIGITS} digits, which is calc's limit")
    return base ** int(exponent)


def _root(value: Fraction, text: str) -> Fraction:
    if value < 0:
        raise ToolError(f"{text!r} takes the root of a negative number")
    top, bottom = math.isqrt(value.numerator), math.isqrt(value.denominator)
    if top * top == value.numerator and bottom * bottom == value.denominator:
        return Fraction(top, bottom)
    return Fraction(math.isqrt(value.numerator * 10**24 // value.denominator), 10**12)
