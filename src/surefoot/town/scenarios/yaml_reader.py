"""Read YAML into frozen dataclasses; errors for unknown keys, wrong types and numbers out of range name the line."""

from __future__ import annotations

import dataclasses
import difflib
import math
import types
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from surefoot.errors import ScenarioError

T = TypeVar("T")
_SCALARS: dict[Any, tuple[str, str]] = {
    float: ("number", "a number"),
    int: ("integer", "a whole number"),
    str: ("string", "a word"),
    bool: ("boolean", "true or false"),
}
"""{type: its name in JSON Schema, its name in errors}."""


def knob(default: Any, doc: str, low: float | None = None, high: float | None = None) -> Any:
    """Return a field of a scenario with its default, description and range."""
    about = {"doc": doc, "low": low, "high": high}
    if isinstance(default, dict | list):
        return dataclasses.field(default_factory=default.copy, metadata=about)
    return dataclasses.field(default=default, metadata=about)


def need(doc: str, low: float | None = None, high: float | None = None) -> Any:
    """Return a field without a default."""
    return dataclasses.field(metadata={"doc": doc, "low": low, "high": high})


class Lines:
    """The line of each value in a file, by a path such as "objects.0.position"."""

    def __init__(self, source: str, lines: Mapping[str, int] | None = None) -> None:
        self.source, self.lines = source, dict(lines or {})

    def place(self, path: str) -> str:
        """Return "file.yaml:12", or only the source if the line is not known."""
        while path not in self.lines and "." in path:
            path = path.rpartition(".")[0]
        return f"{self.source}:{self.lines[path]}" if path in self.lines else self.source

    def error(self, path: str, sentence: str) -> ScenarioError:
        """Return the error for the value at `path`."""
        return ScenarioError(f"{self.place(path)}: {sentence}")


def read_yaml(path: Path) -> tuple[dict[str, Any], Lines]:
    """Return a YAML mapping as plain values, and the line of each."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as why:
        raise ScenarioError(f"{path} cannot be read: {why}") from why
    return parse_yaml(text, str(path))


def parse_yaml(text: str, source: str = "<text>") -> tuple[dict[str, Any], Lines]:
    """Return what `read_yaml` returns, from text."""
    import yaml  # not needed for a scenario in JSON

    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as why:
        mark = getattr(why, "problem_mark", None)
        line = f":{mark.line + 1}" if mark is not None else ""
        raise ScenarioError(f"{source}{line}: invalid YAML: {getattr(why, 'problem', None) or why}") from why
    if not isinstance(node, yaml.MappingNode):
        raise ScenarioError(f"{source}:1: a scenario must be a mapping of keys to values")
    lines: dict[str, int] = {}
    values = _plain(node, "", lines, source)
    return values, Lines(source, lines)


def _plain(node: Any, path: str, lines: dict[str, int], source: str) -> Any:
    import yaml

    if path:
        lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        mapping: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key, line = str(key_node.value), key_node.start_mark.line + 1
            if key in mapping:
                raise ScenarioError(f"{source}:{line}: {key!r} appears twice; keys must be unique")
            inner = f"{path}.{key}" if path else key
            lines[inner] = line
            mapping[key] = _plain(value_node, inner, lines, source)
        return mapping
    if isinstance(node, yaml.SequenceNode):
        return [_plain(part, f"{path}.{i}", lines, source) for i, part in enumerate(node.value)]
    return yaml.SafeLoader("").construct_object(node, deep=True)


def build(kind: type[T], values: Any, lines: Lines) -> T:
    """Return a dataclass from plain values; the error for the first invalid one names its line."""
    _check(schema_of(kind), values, lines, "")
    return msgspec.convert(values, kind)


def _check(schema: Mapping[str, Any], value: Any, lines: Lines, path: str) -> None:
    """Raise `ScenarioError` for the first value that the schema does not allow."""
    called, prefix = path or "the scenario", f"{path}." if path else ""
    if "anyOf" in schema:
        schema = {} if value is None else schema["anyOf"][0]
    match schema.get("type"):
        case None:
            pass
        case "object":
            known = schema.get("properties")
            if not isinstance(value, dict):
                of = "" if known is None else " of keys to values"
                raise lines.error(path, f"{called} must be a mapping{of}, not {_shown(value)}")
            for key, part in value.items():
                if known is not None and key not in known:
                    close = difflib.get_close_matches(str(key), known, n=1)
                    advice = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(known)}"
                    where = f" in {path}" if path else ""
                    raise lines.error(f"{prefix}{key}", f"unknown key {str(key)!r}{where}; {advice}")
                inner = schema["additionalProperties"] if known is None else known[key]
                _check(inner, part, lines, f"{prefix}{key}")
            for name in schema.get("required", ()):
                if known is not None and name not in value:
                    raise lines.error(path, f"{called} needs {name!r}: {known[name]['description']}".rstrip(": "))
        case "array":
            if not isinstance(value, list):
                raise lines.error(path, f"{called} must be a list, not {_shown(value)}")
            items = schema.get("prefixItems") or [schema["items"]] * len(value)
            if len(value) != len(items):
                raise lines.error(path, f"{called} must have {len(items)} entries, not {len(value)}")
            for i, (item, part) in enumerate(zip(items, value, strict=True)):
                _check(item, part, lines, f"{path}.{i}")
        case scalar:
            _check_scalar(scalar, schema, value, lines, path)


def _check_scalar(name: str, schema: Mapping[str, Any], value: Any, lines: Lines, path: str) -> None:
    kind, word = next((kind, word) for kind, (known, word) in _SCALARS.items() if known == name)
    # A bool is an int in Python, but a mistake in a scenario.
    fits = isinstance(value, int | float if kind is float else kind) and (kind is bool or not isinstance(value, bool))
    if not fits or (kind is float and not math.isfinite(value)):
        raise lines.error(path, f"{path} is {_shown(value)}; it must be {word}")
    low, high = schema.get("minimum"), schema.get("maximum")
    if (low is not None and value < low) or (high is not None and value > high):
        legal = f"at least {low:g}" if high is None else f"between {low:g} and {high:g}"
        raise lines.error(path, f"{path} is {kind(value)}; it must be {legal}")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "…"


@cache
def schema_of(kind: type) -> dict[str, Any]:
    """Return the JSON Schema of a dataclass, for checks and for editors."""
    hints = get_type_hints(kind)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for entry in dataclasses.fields(kind):
        properties[entry.name] = _schema(hints[entry.name], entry.metadata) | {
            "description": entry.metadata.get("doc", "")
        }
        if entry.default is dataclasses.MISSING and entry.default_factory is dataclasses.MISSING:
            required.append(entry.name)
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    return schema | ({"required": required} if required else {})


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
    schema: dict[str, Any] = {"type": _SCALARS[hint][0]}
    if hint in (int, float):
        bounds = {"minimum": about.get("low"), "maximum": about.get("high")}
        schema |= {name: bound for name, bound in bounds.items() if bound is not None}
    return schema
