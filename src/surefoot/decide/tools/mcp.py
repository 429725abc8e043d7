"""The tools of an MCP server, taken in through the official `mcp` package. Needs surefoot[mcp]."""

from __future__ import annotations

import importlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from surefoot.decide.tools.protocol import ToolRequest, ToolResult
from surefoot.errors import ToolError


class McpTool:
    """One tool of a session that somebody holds open."""

    def __init__(self, session: Any, name: str, description: str, schema: dict[str, Any]) -> None:
        self._session, self._there = session, name
        self.name, self.description, self.schema = name, description or name.replace("_", " "), schema

    async def call(self, request: ToolRequest) -> ToolResult:
        answer = await self._session.call_tool(self._there, arguments=arguments_for(self.schema, request))
        text = "\n".join(part.text for part in answer.content if getattr(part, "type", "") == "text")
        if getattr(answer, "isError", getattr(answer, "is_error", False)):
            raise ToolError(f"the MCP tool {self.name!r} failed: {text}")
        data = getattr(answer, "structuredContent", getattr(answer, "structured_content", None))
        return ToolResult(text=text, data=data)


def arguments_for(schema: Mapping[str, Any], request: ToolRequest) -> dict[str, Any]:
    """The caller's arguments; the query itself for the first required text that is missing."""
    given = dict(request.arguments)
    properties: Mapping[str, Any] = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name in given:
            continue
        if properties.get(name, {}).get("type") != "string":
            raise ToolError(f"the tool needs {name!r}; pass it in `arguments`")
        given[name] = request.text
    return given


async def tools_of(session: Any, prefix: str = "") -> list[McpTool]:
    """Every tool of an initialised `mcp.ClientSession`."""
    listed = await session.list_tools()
    made = list[McpTool]()
    for each in listed.tools:
        schema = getattr(each, "inputSchema", None) or getattr(each, "input_schema", {})
        tool = McpTool(session, each.name, each.description or "", dict(schema))
        tool.name = prefix + tool.name
        made.append(tool)
    return made


@asynccontextmanager
async def mcp_tools(command: str, args: Sequence[str] = (), *, prefix: str = "") -> AsyncGenerator[list[McpTool]]:
    """Start an MCP server as a child process and take in its tools; it ends with the block."""
    try:
        mcp, stdio = importlib.import_module("mcp"), importlib.import_module("mcp.client.stdio")
    except ImportError as error:
        raise ToolError("tools of MCP servers need `pip install surefoot[mcp]`") from error
    parameters = mcp.StdioServerParameters(command=command, args=list(args))
    async with stdio.stdio_client(parameters) as (read, write), mcp.ClientSession(read, write) as session:
        await session.initialize()
        yield await tools_of(session, prefix)
