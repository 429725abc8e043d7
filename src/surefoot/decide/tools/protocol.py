"""The tool protocol, `@tool` for functions, and `Toolbox`, which runs tools with a time limit."""

from __future__ import annotations

import asyncio
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from surefoot.errors import ToolError, UnknownOption


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """Result of a tool: text for people, data for programs, and its sources."""

    text: str
    data: Any = None
    sources: list[str] = field(default_factory=list[str])
    warnings: list[str] = field(default_factory=list[str])
    quality: float | None = None
    """Quality from 0 to 1, if the tool can assess its result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRequest:
    """A query with its retrieved context and known arguments."""

    text: str
    context: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """(id, text) of the retrieved passages, best first."""
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Arguments that the caller passes, by the names in the tool's schema."""


class Tool(Protocol):
    """A tool: name, description that the policy selects it by, argument schema, and an async call."""

    name: str
    description: str
    schema: dict[str, Any]
    """JSON Schema of the arguments; its type is object."""

    async def call(self, request: ToolRequest) -> ToolResult: ...


class FunctionTool:
    """A function as a tool. Parameters come from the request's arguments, the first missing text parameter from the query.

    Args:
        function: Plain or async; plain functions run in a thread.
        name: Default: the function's name.
        description: Default: the first paragraph of the docstring.
    """

    def __init__(
        self, function: Callable[..., Any], *, name: str | None = None, description: str | None = None
    ) -> None:
        self.function = function
        self.name = name or function.__name__
        docstring = inspect.getdoc(function) or ""
        self.description = description or docstring.split("\n\n")[0].replace("\n", " ")
        if not self.description:
            raise ToolError(f"tool {self.name!r} has no description, which the policy selects it by; add a docstring")
        self.schema = schema_of(function)

    async def call(self, request: ToolRequest) -> ToolResult:
        arguments = dict(request.arguments)
        required = [n for n in self.schema["required"] if n not in arguments]
        texts = [
            n for n, spec in self.schema["properties"].items() if spec.get("type") == "string" and n not in arguments
        ]
        # The query goes to the first text parameter, unless only other parameters are required.
        if texts and (not required or texts[0] in required):
            arguments[texts[0]] = request.text
        if missing := [n for n in required if n not in arguments]:
            raise ToolError(f"tool {self.name!r} needs {missing[0]!r}; pass it in `arguments`")
        # A plain function runs in a thread, so that it does not block the event loop. At the time limit its result is dropped;
        # the thread itself cannot be stopped.
        if inspect.iscoroutinefunction(self.function):
            return as_result(await self.function(**arguments))
        return as_result(await asyncio.to_thread(self.function, **arguments))


def tool(function: Callable[..., Any] | None = None, *, name: str | None = None, description: str | None = None) -> Any:
    """Turn a function into a tool: `@tool`, or `@tool(name=…)`.

    Args:
        function: Its docstring is the description, its annotations the schema.
        name: Default: the function's name.
        description: Default: the first paragraph of the docstring.
    """
    if function is None:
        return partial(FunctionTool, name=name, description=description)
    return FunctionTool(function, name=name, description=description)


def as_result(value: Any) -> ToolResult:
    """Return the value as a `ToolResult`, with its `str` as text."""
    return value if isinstance(value, ToolResult) else ToolResult(text=str(value), data=value)


# Other annotations become strings, which every caller can send.
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
    """Return the JSON Schema of a function's parameters, from their annotations."""
    hints = typing.get_type_hints(function)
    properties, required = dict[str, Any](), list[str]()
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ToolError(f"{function.__name__} takes *{name}; a tool's parameters must have names")
        properties[name] = dict(_type_schema(hints.get(name, str)))
        if parameter.default is parameter.empty:
            required.append(name)
        elif isinstance(parameter.default, str | int | float | bool):
            properties[name]["default"] = parameter.default
    return object_schema(properties, required)


def _type_schema(hint: Any) -> dict[str, Any]:
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        types_ = [each for each in inside if each is not type(None)]
        return _type_schema(types_[0]) if len(types_) == 1 else {"anyOf": [_type_schema(each) for each in types_]}
    if origin is typing.Literal:
        return {"enum": list(inside)}
    if origin is list:
        return {"type": "array", "items": _type_schema(inside[0])}
    return _TYPES.get(origin or hint, {"type": "string"})


class Toolbox:
    """An agent's tools, by name."""

    def __init__(self, *tools: Tool) -> None:
        self._tools: dict[str, Tool] = {}
        for each in tools:
            self.add(each)

    def add(self, new: Tool) -> None:
        if new.name in self._tools:
            raise ToolError(f"a tool named {new.name!r} already exists; remove it first or use another name")
        self._tools[new.name] = new

    def remove(self, name: str) -> None:
        self[name]
        del self._tools[name]

    def __getitem__(self, name: str) -> Tool:
        if name not in self._tools:
            raise UnknownOption(f"unknown tool {name!r}; the agent has {', '.join(self._tools) or 'none'}")
        return self._tools[name]

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __iter__(self) -> typing.Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    async def run(self, name: str, request: ToolRequest, *, seconds: float) -> ToolResult:
        """Run a tool; raise `ToolError` if it takes longer than `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                return await self[name].call(request)
        except TimeoutError as error:
            raise ToolError(f"tool {name!r} did not finish within {seconds:.1f} s") from error
