"""YAML into frozen dataclasses: every unknown key, wrong kind and number out of range is an error with its line."""

from __future__ import annotations

import dataclasses
import difflib
import math
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from surefoot.errors import ScenarioError

T = TypeVar("T")


def knob(default: Any, doc: str, low: float | None = None, high: float | None = None) -> Any:
    """A field of a scenario: its default, what it means, and between which numbers it lies."""
    about = {"doc": doc, "low": low, "high": high}
    if isinstance(default, dict | list):
        return dataclasses.field(default_factory=default.copy, metadata=about)
    return dataclasses.field(default=default, metadata=about)


def need(doc: str, low: float | None = None, high: float | None = None) -> Any:
    """A field that has no default."""
    return dataclasses.field(metadata={"doc": doc, "low": low, "high": high})


class Lines:
    """Where in a file each value stood: a path such as "objects.0.position" to its line."""

    def __init__(self, source: str, lines: Mapping[str, int] | None = None) -> None:
        self.source, self.lines = source, dict(lines or {})

    def at(self, path: str) -> str:
        """ "file.yaml:12", or only the source where the line is not known."""
        while path not in self.lines and "." in path:
            path = path.rpartition(".")[0]
        return f"{self.source}:{self.lines[path]}" if path in self.lines else self.source

    def error(self, path: str, sentence: str) -> ScenarioError:
        """To be raised: the place, then the sentence."""
        return ScenarioError(f"{self.at(path)}: {sentence}")


def read_yaml(path: Path) -> tuple[dict[str, Any], Lines]:
    """A YAML mapping as plain values, and where each stood."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as why:
        raise ScenarioError(f"{path} cannot be read: {why}") from why
    return parse_yaml(text, str(path))


def parse_yaml(text: str, source: str = "<text>") -> tuple[dict[str, Any], Lines]:
    """The same from text."""
    import yaml  # a scenario that comes as JSON needs none

    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as why:
        mark = getattr(why, "problem_mark", None)
        line = f":{mark.line + 1}" if mark is not None else ""
        raise ScenarioError(f"{source}{line}: this is no YAML: {getattr(why, 'problem', None) or why}") from why
    if not isinstance(node, yaml.MappingNode):
        raise ScenarioError(f"{source}:1: a scenario is a mapping of keys to values")
    lines: dict[str, int] = {}
    values = _plain(node, "", lines, source)
    return values, Lines(source, lines)


def _plain(node: Any, path: str, lines: dict[str, int], source: str) -> Any:
    import yaml

    if path:
        lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key, line = str(key_node.value), key_node.start_mark.line + 1
            if key in found:
                raise ScenarioError(f"{source}:{line}: {key!r} is given twice; give it once")
            inner = f"{path}.{key}" if path else key
            lines[inner] = line
            found[key] = _plain(value_node, inner, lines, source)
        return found
    if isinstance(node, yaml.SequenceNode):
        return [_plain(part, f"{path}.{i}", lines, source) for i, part in enumerate(node.value)]
    return yaml.SafeLoader("").construct_object(node, deep=True)


def build(kind: type[T], values: Any, lines: Lines, path: str = "") -> T:
    """A dataclass from plain values; the first thing that is wrong is named with its line."""
    if not isinstance(values, dict):
        raise lines.error(path, f"{_called(path)} must be a mapping of keys to values, not {_shown(values)}")
    fields = {entry.name: entry for entry in dataclasses.fields(kind)}  # pyright: ignore[reportArgumentType]
    hints = get_type_hints(kind)
    given: dict[str, Any] = {}
    for key, value in values.items():
        inner = f"{path}.{key}" if path else str(key)
        if key not in fields:
            raise lines.error(inner, _unknown(str(key), path, list(fields)))
        given[key] = _value(hints[key], value, fields[key].metadata, lines, inner)
    for name, entry in fields.items():
        if name not in given and entry.default is dataclasses.MISSING and entry.default_factory is dataclasses.MISSING:
            raise lines.error(path, f"{_called(path)} needs {name!r}: {entry.metadata.get('doc', '')}".rstrip(": "))
    return kind(**given)


def _value(hint: Any, value: Any, about: Mapping[str, Any], lines: Lines, path: str) -> Any:
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        inner = [a for a in args if a is not type(None)]
        return None if value is None else _value(inner[0], value, about, lines, path)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return build(hint, value, lines, path)
    if origin is dict:
        if not isinstance(value, dict):
            raise lines.error(path, f"{_called(path)} must be a mapping, not {_shown(value)}")
        return {str(k): _value(args[1], v, about, lines, f"{path}.{k}") for k, v in value.items()}
    if origin in (tuple, list):
        return _sequence(origin, args, value, about, lines, path)
    return _scalar(hint, value, about, lines, path)


def _sequence(origin: Any, args: tuple[Any, ...], value: Any, about: Mapping[str, Any], lines: Lines, path: str) -> Any:
    if not isinstance(value, list):
        raise lines.error(path, f"{_called(path)} must be a list, not {_shown(value)}")
    if origin is tuple and args[-1] is not Ellipsis:
        if len(value) != len(args):
            raise lines.error(path, f"{_called(path)} must have {len(args)} entries, not {len(value)}")
        return tuple(
            _value(a, v, about, lines, f"{path}.{i}") for i, (a, v) in enumerate(zip(args, value, strict=True))
        )
    made = (_value(args[0], v, about, lines, f"{path}.{i}") for i, v in enumerate(value))
    return origin(made)


def _scalar(hint: Any, value: Any, about: Mapping[str, Any], lines: Lines, path: str) -> Any:
    if hint is Any:
        return value
    right = {
        float: isinstance(value, int | float) and not isinstance(value, bool),
        int: isinstance(value, int) and not isinstance(value, bool),
        str: isinstance(value, str),
        bool: isinstance(value, bool),
    }[hint]
    if right and hint is float and not math.isfinite(value):
        right = False
    if not right:
        words = {float: "a number", int: "a whole number", str: "a word", bool: "true or false"}
        raise lines.error(path, f"{_called(path)} is {_shown(value)}; it must be {words[hint]}")
    value = hint(value)
    low, high = about.get("low"), about.get("high")
    if hint in (int, float) and ((low is not None and value < low) or (high is not None and value > high)):
        if high is None:
            raise lines.error(path, f"{_called(path)} is {value}; it must be at least {low:g}")
        raise lines.error(path, f"{_called(path)} is {value}; it must be between {low:g} and {high:g}")
    return value


def _unknown(key: str, path: str, known: list[str]) -> str:
    close = difflib.get_close_matches(key, known, n=1)
    advice = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(known)}"
    return f"unknown key {key!r}{f' in {path}' if path else ''}; {advice}"


def _called(path: str) -> str:
    return path or "the scenario"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "…"


def schema_of(kind: type) -> dict[str, Any]:
    """A JSON Schema of a dataclass, for editors."""
    hints = get_type_hints(kind)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for entry in dataclasses.fields(kind):
        properties[entry.name] = _schema(hints[entry.name], entry.metadata) | {
            "description": entry.metadata.get("doc", "")
        }
        if entry.default is dataclasses.MISSING and entry.default_factory is dataclasses.MISSING:
            required.append(entry.name)
    made: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    return made | ({"required": required} if required else {})


def _schema(hint: Any, about: Mapping[str, Any]) -> dict[str, Any]:
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        inner = _schema(next(a for a in args if a is not type(None)), about)
        return {"anyOf": [inner, {"type": "null"}]}
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return schema_of(hint)
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(args[1], about)}
    if origin is tuple and args[-1] is not Ellipsis:
        items = [_schema(a, about) for a in args]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
    if origin in (tuple, list):
        return {"type": "array", "items": _schema(args[0], about)}
    if hint is Any:
        return {}
    words: dict[Any, str] = {float: "number", int: "integer", str: "string", bool: "boolean"}
    made: dict[str, Any] = {"type": words[hint]}
    if hint in (int, float):
        made |= {"minimum": about["low"]} if about.get("low") is not None else {}
        made |= {"maximum": about["high"]} if about.get("high") is not None else {}
    return made
