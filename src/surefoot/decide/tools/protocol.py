"""What a tool is, how one function becomes one, and how it is run: with a time limit."""

from __future__ import annotations

import asyncio
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from surefoot.errors import ToolError, UnknownOption


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool gave: words for a person, data for a program, and where it has it from."""

    text: str
    data: Any = None
    sources: list[str] = field(default_factory=list[str])
    warnings: list[str] = field(default_factory=list[str])
    quality: float | None = None
    """0 … 1, where the tool can judge its own answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRequest:
    """A query and what was found for it; tools take from it what they need."""

    text: str
    context: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """(id, text) of retrieved pieces, best first."""
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Arguments the caller knows already, by the names of the tool's schema."""


class Tool(Protocol):
    """Anything with a name, a description to be chosen by, a schema of its arguments, and an async call."""

    name: str
    description: str
    schema: dict[str, Any]
    """JSON Schema of the arguments, an object."""

    async def call(self, request: ToolRequest) -> ToolResult: ...


class FunctionTool:
    """A function as a tool. Its parameters are filled from the request's arguments; the first text one from the query."""

    def __init__(
        self, function: Callable[..., Any], *, name: str | None = None, description: str | None = None
    ) -> None:
        self.function = function
        self.name = name or function.__name__
        words = inspect.getdoc(function) or ""
        self.description = description or words.split("\n\n")[0].replace("\n", " ")
        if not self.description:
            raise ToolError(f"tool {self.name!r} has no description; give it a docstring: the policy chooses by it")
        self.schema = schema_of(function)

    async def call(self, request: ToolRequest) -> ToolResult:
        given = dict(request.arguments)
        required = [n for n in self.schema["required"] if n not in given]
        texts = [n for n, spec in self.schema["properties"].items() if spec.get("type") == "string" and n not in given]
        if texts and (not required or texts[0] in required):
            given[texts[0]] = request.text
        missing = [n for n in required if n not in given]
        if missing:
            raise ToolError(f"tool {self.name!r} needs {missing[0]!r}; pass it in `arguments`")
        if inspect.iscoroutinefunction(self.function):
            return as_result(await self.function(**given))
        return as_result(await asyncio.to_thread(self.function, **given))


def tool(function: Callable[..., Any] | None = None, *, name: str | None = None, description: str | None = None) -> Any:
    """Decorator: `@tool` over a function with a docstring makes it one that an agent can choose."""

    def make(inner: Callable[..., Any]) -> FunctionTool:
        return FunctionTool(inner, name=name, description=description)

    return make if function is None else make(function)


def as_result(value: Any) -> ToolResult:
    return value if isinstance(value, ToolResult) else ToolResult(text=str(value), data=value)


_TYPES: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    list: {"type": "array"},
    dict: {"type": "object"},
}


def object_schema(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    """Return the JSON Schema of a tool's arguments."""
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def schema_of(function: Callable[..., Any]) -> dict[str, Any]:
    """JSON Schema of a function's parameters, from their annotations."""
    hints = typing.get_type_hints(function)
    properties, required = dict[str, Any](), list[str]()
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ToolError(f"{function.__name__} takes *{name}; a tool's arguments must have names")
        properties[name] = dict(_type_schema(hints.get(name, str)))
        if parameter.default is parameter.empty:
            required.append(name)
        elif isinstance(parameter.default, str | int | float | bool):
            properties[name]["default"] = parameter.default
    return object_schema(properties, required)


def _type_schema(hint: Any) -> dict[str, Any]:
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        kept = [each for each in inside if each is not type(None)]
        return _type_schema(kept[0]) if len(kept) == 1 else {"anyOf": [_type_schema(each) for each in kept]}
    if origin is typing.Literal:
        return {"enum": list(inside)}
    if origin is list:
        return {"type": "array", "items": _type_schema(inside[0])}
    return _TYPES.get(origin or hint, {"type": "string"})


class Toolbox:
    """The tools an agent has, by name."""

    def __init__(self, *tools: Tool) -> None:
        self._tools: dict[str, Tool] = {}
        for each in tools:
            self.add(each)

    def add(self, new: Tool) -> None:
        if new.name in self._tools:
            raise ToolError(f"there already is a tool {new.name!r}; remove it first, or give this one another name")
        self._tools[new.name] = new

    def remove(self, name: str) -> None:
        self[name]
        del self._tools[name]

    def __getitem__(self, name: str) -> Tool:
        if name not in self._tools:
            raise UnknownOption(f"no tool {name!r}; there are {', '.join(self._tools) or 'none'}")
        return self._tools[name]

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __iter__(self) -> typing.Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    async def run(self, name: str, request: ToolRequest, *, seconds: float) -> ToolResult:
        """Run one; after `seconds` it is cut off with a ToolError."""
        try:
            async with asyncio.timeout(seconds):
                return await self[name].call(request)
        except TimeoutError as error:
            raise ToolError(f"tool {name!r} was not ready after {seconds:.1f} s and was stopped") from error
