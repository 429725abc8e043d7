"""Kinds of values: what is legal, how text is parsed, how JSON is written."""

from __future__ import annotations

import ast
import math
import numbers
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from surefoot.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of value: its name, what is legal, how it is parsed and how it is written."""

    type: str
    legal: str
    """Ends the sentence "it must be …"."""
    accept: Callable[[Any], Any]
    """Return the canonical value; raise TypeError or ValueError for an illegal one."""
    parse: Callable[[str], Any]
    """Convert text to a value for `accept`."""
    to_json: Callable[[Any], Any] = lambda value: value


@dataclass(frozen=True, slots=True)
class Interval:
    """A range of numbers. Infinite bounds are no bounds; inf and NaN are never inside."""

    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False

    def __contains__(self, value: float) -> bool:
        above = value > self.low if self.open_low else value >= self.low
        below = value < self.high if self.open_high else value <= self.high
        return math.isfinite(value) and above and below

    def __str__(self) -> str:
        parts: list[str] = []
        if math.isfinite(self.low):
            parts.append(f"{'above' if self.open_low else 'at least'} {self.low}")
        if math.isfinite(self.high):
            parts.append(f"{'below' if self.open_high else 'at most'} {self.high}")
        return " and ".join(parts) or "finite"


POSITIVE = Interval(0, open_low=True)
NOT_NEGATIVE = Interval(0)
UNIT = Interval(0, 1)


def as_list(value: Any) -> list[Any] | None:
    """Return a list or tuple as a list; None for anything else."""
    return list(cast("list[Any]", value)) if isinstance(value, list | tuple) else None


def as_mapping(value: Any) -> dict[Any, Any] | None:
    """Return a mapping as a dict; None for anything else."""
    return dict(cast("Mapping[Any, Any]", value)) if isinstance(value, Mapping) else None


def number(value: Any) -> float:
    """Return a float from any real number, including numpy's; raise TypeError for a bool or text."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{value!r} is not a number")
    return float(value)


def whole_number(value: Any) -> int:
    """Return an int from any integral number, such as 1e5 from a YAML file."""
    exact = number(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if not exact.is_integer():
        raise ValueError(f"{value!r} is not whole")
    return int(exact)


def boolean(value: Any) -> bool:
    """Return a bool from True, False, or a word such as "yes" or "off"."""
    if isinstance(value, str):
        return _parse_bool(value)
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is neither True nor False")
    return value


def _parse_bool(text: str) -> bool:
    match text.strip().lower():
        case "true" | "yes" | "on" | "1":
            return True
        case "false" | "no" | "off" | "0":
            return False
        case _:
            raise ValueError(f"{text!r} is neither true nor false")


def _parse_int(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return whole_number(float(text))  # "1e5"


def _inside(within: Interval, convert: Callable[[Any], float], value: Any) -> float:
    if convert(value) not in within:
        raise ValueError(f"{value!r} is not {within}")
    return convert(value)


def real(within: Interval) -> Kind:
    return Kind("float", f"a number, {within}", partial(_inside, within, number), float)


def integer(within: Interval) -> Kind:
    return Kind("int", f"a whole number, {within}", partial(_inside, within, whole_number), _parse_int)


def flag() -> Kind:
    def accept(value: Any) -> bool:
        if not isinstance(value, bool):
            raise TypeError(f"{value!r} is neither True nor False")
        return value

    return Kind("bool", "true or false", accept, _parse_bool)


def choice(*words: str, true: str | None = None, false: str | None = None) -> Kind:
    """One of `words`; `true` and `false` are the words for a plain bool, which some other libraries use."""

    def accept(value: Any) -> str:
        if isinstance(value, bool):
            value = true if value else false
        if value not in words:
            raise ValueError(f"{value!r} is none of them")
        return value

    def parse(text: str) -> Any:
        word = text.strip().lower()
        if word not in words and true is not None:
            return _parse_bool(word)
        return word

    return Kind(" | ".join(words), f"one of {', '.join(words)}", accept, parse)


def matching(pattern: str, legal: str) -> Kind:
    """Text that matches `pattern` completely."""

    def accept(value: Any) -> str:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise ValueError(f"{value!r} does not match")
        return value

    return Kind("str", legal, accept, str.strip)


def sizes() -> Kind:
    """Layer widths; text such as "64,64" or "[64, 64]" is parsed."""
    width = integer(Interval(1))

    def accept(value: Any) -> tuple[int, ...]:
        parts = as_list(value)
        if parts is None:
            raise TypeError(f"{value!r} is not a list")
        return tuple(width.accept(part) for part in parts)

    return Kind("ints", "a list of whole numbers, each at least 1", accept, _parts(_parse_int), list)


def words() -> Kind:
    """Names; text such as "state,map" is parsed."""

    def accept(value: Any) -> tuple[str, ...]:
        parts = as_list(value)
        if parts is None or not all(isinstance(part, str) and part for part in parts):
            raise TypeError(f"{value!r} is not a list of names")
        return tuple(parts)

    return Kind("names", "a list of names", accept, _parts(str.strip), list)


def number_range() -> Kind:
    """A low and a high number; text such as "-1,1" is parsed."""

    def accept(value: Any) -> tuple[float, float]:
        low, high = (real(Interval()).accept(part) for part in value)
        if not low < high:
            raise ValueError(f"{low} is not below {high}")
        return low, high

    return Kind("float, float", "two numbers, the first below the second", accept, _parts(float), list)


def _parts(parse: Callable[[str], Any]) -> Callable[[str], list[Any]]:
    def split(text: str) -> list[Any]:
        return [parse(part) for part in text.strip().strip("[]()").split(",") if part.strip()]

    return split


def optional(kind: Kind) -> Kind:
    """`kind` or None, written as none or null."""

    def parse(text: str) -> Any:
        return None if text.strip().lower() in ("none", "null") else kind.parse(text)

    return Kind(
        f"{kind.type} | none",
        f"{kind.legal}; or none",
        lambda value: None if value is None else kind.accept(value),
        parse,
        lambda value: None if value is None else kind.to_json(value),
    )


def or_word(word: str, kind: Kind) -> Kind:
    """`kind`, or a word such as "auto" for a value that is determined later."""

    def accept(value: Any) -> Any:
        return word if value == word else kind.accept(value)

    def parse(text: str) -> Any:
        return word if text.strip().lower() == word else kind.parse(text)

    return Kind(f"{word} | {kind.type}", f"{word}, or {kind.legal}", accept, parse, kind.to_json)


def literal(text: str) -> Any:
    """Return the value of a Python literal, which may contain `dict(a=1)` and names such as `nn.ReLU`; nothing is executed."""
    try:
        return _plain(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, TypeError, ValueError, RecursionError, MemoryError) as why:
        raise ConfigError(f"cannot read {text!r} as a literal such as dict(net_arch=[64, 64])") from why


def _plain(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return [_plain(part) for part in parts]
        case ast.Dict(keys=keys, values=values) if None not in keys:
            return {_plain(key): _plain(value) for key, value in zip(keys, values, strict=True) if key is not None}
        case ast.Call(func=ast.Name(id="dict"), args=[], keywords=pairs) if all(pair.arg for pair in pairs):
            return {pair.arg: _plain(pair.value) for pair in pairs}
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case _:
            raise ValueError(f"{ast.unparse(node)} is not a literal")
