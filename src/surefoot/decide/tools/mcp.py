"""Tools of an MCP server, through the official `mcp` package. Needs surefoot[mcp]."""

from __future__ import annotations

import importlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from surefoot.decide.tools.protocol import ToolRequest, ToolResult
from surefoot.errors import ToolError


class McpTool:
    """One tool of an open MCP session."""

    def __init__(self, session: Any, name: str, description: str, schema: dict[str, Any]) -> None:
        self._session, self._remote_name = session, name
        self.name, self.description, self.schema = name, description or name.replace("_", " "), schema

    async def call(self, request: ToolRequest) -> ToolResult:
        response = await self._session.call_tool(self._remote_name, arguments=arguments_for(self.schema, request))
        text = "\n".join(part.text for part in response.content if getattr(part, "type", "") == "text")
        if getattr(response, "isError", getattr(response, "is_error", False)):
            raise ToolError(f"the MCP tool {self.name!r} failed: {text}")
        data = getattr(response, "structuredContent", getattr(response, "structured_content", None))
        return ToolResult(text=text, data=data)


def arguments_for(schema: Mapping[str, Any], request: ToolRequest) -> dict[str, Any]:
    """Return the caller's arguments, with the query for required text arguments that are missing."""
    arguments = dict(request.arguments)
    properties: Mapping[str, Any] = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name in arguments:
            continue
        if properties.get(name, {}).get("type") != "string":
            raise ToolError(f"the tool needs {name!r}; pass it in `arguments`")
        arguments[name] = request.text
    return arguments


async def tools_of(session: Any, prefix: str = "") -> list[McpTool]:
    """Return the tools of an initialised `mcp.ClientSession`, their names with `prefix`."""
    tools = list[McpTool]()
    for each in (await session.list_tools()).tools:
        # The attribute's name differs between versions of the package.
        schema = getattr(each, "inputSchema", None) or getattr(each, "input_schema", {})
        tool = McpTool(session, each.name, each.description or "", dict(schema))
        tool.name = prefix + tool.name
        tools.append(tool)
    return tools


@asynccontextmanager
async def mcp_tools(command: str, args: Sequence[str] = (), *, prefix: str = "") -> AsyncGenerator[list[McpTool]]:
    """Start an MCP server as a child process and return its tools; it stops at the end of the block.

    Args:
        command: Program to start.
        args: Its arguments.
        prefix: Put before every tool's name, to tell servers apart.
    """
    try:
        mcp, stdio = importlib.import_module("mcp"), importlib.import_module("mcp.client.stdio")
    except ImportError as error:
        raise ToolError("tools of MCP servers need `pip install surefoot[mcp]`") from error
    parameters = mcp.StdioServerParameters(command=command, args=list(args))
    async with stdio.stdio_client(parameters) as (read, write), mcp.ClientSession(read, write) as session:
        await session.initialize()
        yield await tools_of(session, prefix)
