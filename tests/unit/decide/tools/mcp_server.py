"""A small MCP server over stdio, for the test beside it."""

from __future__ import annotations

try:
    from mcp.server.fastmcp import FastMCP as Server
except ImportError:  # mcp 2
    from mcp.server import MCPServer as Server

server = Server("little")


@server.tool()
def shout(text: str) -> str:
    """Say it in capitals."""
    return text.upper()


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


if __name__ == "__main__":
    server.run()
