"""`calc`: exact arithmetic on fractions by a parser of its own, with caps so that no question can occupy the machine."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from surefoot.data.shipped_yaml import read_shipped
from surefoot.decide.tools.protocol import ToolRequest, ToolResult, object_schema
from surefoot.errors import ToolError

LONGEST, MOST_OPERANDS, MOST_DIGITS, HIGHEST_EXPONENT, DEEPEST = 500, 100, 400, 1000, 30

_TOKEN = re.compile(r"\s*(?:(\d[\d,]*\.?\d*(?:[eE][-+]?\d{1,3})?|\.\d+)|(\*\*|sqrt|[-+*/%^()!]))", re.ASCII)
_WORDS: dict[str, str] = read_shipped("surefoot.decide.tools.toolbox", "calc.yaml")
"""Expressions in lower case, and the signs that replace them."""
_BINDING = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2, "^": 4, "**": 4}
_OPERATIONS: dict[str, Callable[[Fraction, Fraction], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
}
_SIGN_BINDING = 3
"""A sign in front binds less than a power: -2 ^ 2 is -4."""
_EXPRESSION = re.compile(r"(?:sqrt\s*)*[-+(]*\s*(?:\d|\.\d)(?:[\d\s.,+\-*/%^()!eE]|sqrt)*", re.ASCII)


class CalcTool:
    """Finds the expression in a question and works it out exactly."""

    name = "calc"
    description = "Calculate: exact arithmetic with numbers, percent, powers, roots, sums, products, fractions"
    schema = object_schema({"expression": {"type": "string", "maxLength": LONGEST}}, ["expression"])

    async def call(self, request: ToolRequest) -> ToolResult:
        text = str(request.arguments.get("expression", request.text))
        expression = find_expression(text)
        value = evaluate(expression)
        return ToolResult(text=f"{expression} = {show(value)}", data=str(value), quality=1.0)


def find_expression(text: str) -> str:
    """The longest arithmetic expression in a text, with words such as "percent of" as signs."""
    if len(text) > LONGEST:
        raise ToolError(f"the question has {len(text)} characters; calc reads at most {LONGEST}")
    plain = text.lower().replace("$", "").replace("€", "").replace("£", "")
    for pattern, sign in _WORDS.items():
        plain = re.sub(pattern, sign, plain)
    found = [match.group().strip().rstrip(",. ") for match in _EXPRESSION.finditer(plain)]
    found = [each for each in found if re.search(r"\d", each)]
    if not found:
        raise ToolError(f"there is no arithmetic in {text[:60]!r}; calc needs numbers and signs such as 3 * (4 + 5)")
    with_signs = [each for each in found if re.search(r"[-+*/%^!]|sqrt", each.lstrip("-+ "))]
    return max(with_signs or found, key=len)


def evaluate(expression: str) -> Fraction:
    """The exact value. Knows + - * / % ^ ** ! sqrt and brackets; square roots must come out even or are refused."""
    parser = _Parser(expression)
    value = parser.value()
    if parser.tokens:
        raise ToolError(f"calc cannot read {parser.tokens[0]!r} after a finished expression in {expression!r}")
    return value


def show(value: Fraction) -> str:
    """As people write it: an integer, a decimal that ends, or one of 12 digits with its fraction."""
    if value.denominator == 1:
        return str(value.numerator)
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest == 1 and value.denominator < 10**15:
        digits = max(len(str(value.denominator)), 1)
        scaled = value * 10 ** (4 * digits)
        text = f"{abs(scaled.numerator // scaled.denominator):0{4 * digits + 1}d}"
        whole, fraction = text[: -4 * digits], text[-4 * digits :].rstrip("0")
        return f"{'-' if value < 0 else ''}{whole}.{fraction}"
    return f"{float(value):.12g} ({value.numerator}/{value.denominator})"


class _Parser:
    """Precedence climbing over the tokens of an expression."""

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST:
            raise ToolError(f"the expression has {len(text)} characters; calc reads at most {LONGEST}")
        self.text, self.tokens, self.depth, at = text, list[str](), 0, 0
        while at < len(text.rstrip()):
            match = _TOKEN.match(text, at)
            if match is None:
                raise ToolError(f"calc cannot read {text[at:][:20]!r} in {text!r}")
            self.tokens.append((match.group(1) or match.group(2)).replace(",", ""))
            at = match.end()
        operands = sum(token[0].isdigit() or token[0] == "." for token in self.tokens)
        if operands > MOST_OPERANDS:
            raise ToolError(f"the expression has {operands} numbers; calc takes at most {MOST_OPERANDS}")

    def value(self, binding: int = 1) -> Fraction:
        """Return the value of the longest expression from here on whose signs bind at least this strongly."""
        if self.tokens and self.tokens[0] in ("-", "+"):
            sign = self.tokens.pop(0)
            value = self._nested(lambda: self.value(_SIGN_BINDING))
            value = -value if sign == "-" else value
        else:
            value = self.atom()
        while self.tokens and _BINDING.get(self.tokens[0], 0) >= binding:
            sign = self.tokens.pop(0)
            if sign in ("^", "**"):  # from right to left, and a sign may follow: 2 ^ -1
                value = _power(value, self._nested(lambda: self.value(_SIGN_BINDING)), self.text)
                continue
            other = self.value(_BINDING[sign] + 1)
            if sign in ("/", "%") and other == 0:
                raise ToolError(f"{self.text!r} divides by zero")
            value = _capped(_OPERATIONS[sign](value, other))
        return value

    def atom(self) -> Fraction:
        """Return the value of a number, a bracket or a root, with the factorials behind it."""
        if not self.tokens:
            raise ToolError(f"{self.text!r} ends too early")
        token = self.tokens.pop(0)
        if token == "(":
            value = self._nested(self.value)
            if not self.tokens or self.tokens.pop(0) != ")":
                raise ToolError(f"a bracket is not closed in {self.text!r}")
        elif token == "sqrt":
            value = _root(self._nested(self.atom), self.text)
        elif token[0].isdigit() or token[0] == ".":
            value = _capped(_number(token))
        else:
            raise ToolError(f"{token!r} stands where a number should be in {self.text!r}")
        while self.tokens and self.tokens[0] == "!":
            self.tokens.pop(0)
            if value.denominator != 1 or not 0 <= value <= 200:
                raise ToolError(f"{value}! is beyond calc; it takes factorials of whole numbers up to 200")
            value = _capped(Fraction(math.factorial(int(value))))
        return value

    def _nested(self, part: Callable[[], Fraction]) -> Fraction:
        self.depth += 1
        if self.depth > DEEPEST:
            raise ToolError(f"the expression is nested more than {DEEPEST} deep")
        value = part()
        self.depth -= 1
        return value


def _number(token: str) -> Fraction:
    """A literal; its exponent is looked at before anything of that size is made."""
    mantissa, _, exponent = token.lower().partition("e")
    if len(mantissa) > MOST_DIGITS or (exponent and abs(int(exponent)) > MOST_DIGITS):
        raise ToolError(f"{token[:20]} has more than {MOST_DIGITS} digits")
    return Fraction(token.rstrip(".") if not exponent else token)


def _capped(value: Fraction) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MOST_DIGITS * 3.33:
        raise ToolError(f"the result has more than {MOST_DIGITS} digits; calc stops there")
    return value


def _power(base: Fraction, exponent: Fraction, text: str) -> Fraction:
    if exponent == Fraction(1, 2):
        return _root(base, text)
    if exponent.denominator != 1:
        raise ToolError(f"{text!r} has the exponent {exponent}; calc is exact and takes whole exponents and 1/2")
    if abs(exponent) > HIGHEST_EXPONENT:
        raise ToolError(f"{text!r} has the exponent {exponent}; calc goes up to {HIGHEST_EXPONENT}")
    if base == 0 and exponent < 0:
        raise ToolError(f"{text!r} divides by zero")
    bits = max(base.numerator.bit_length(), base.denominator.bit_length()) * abs(int(exponent))
    if bits > MOST_DIGITS * 3.33:
        raise ToolError(f"{text!r} would have more than {MOST_DIGITS} digits; calc stops there")
    return base ** int(exponent)


def _root(value: Fraction, text: str) -> Fraction:
    if value < 0:
        raise ToolError(f"{text!r} is the root of a negative number")
    top, bottom = math.isqrt(value.numerator), math.isqrt(value.denominator)
    if top * top == value.numerator and bottom * bottom == value.denominator:
        return Fraction(top, bottom)
    return Fraction(math.isqrt(value.numerator * 10**24 // value.denominator), 10**12)  # 12 places, rounded down
