"""Tools of an MCP server, taken in through the official package."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from surefoot.decide.tools.mcp import arguments_for, mcp_tools
from surefoot.decide.tools.protocol import Toolbox, ToolRequest
from surefoot.errors import ToolError

SERVER = Path(__file__).with_name("mcp_server.py")


def test_arguments_come_from_the_caller_and_the_first_text_from_the_query():
    schema = {"properties": {"text": {"type": "string"}, "n": {"type": "integer"}}, "required": ["text", "n"]}
    assert arguments_for(schema, ToolRequest(text="hello", arguments={"n": 3})) == {"text": "hello", "n": 3}
    with pytest.raises(ToolError, match="needs 'n'"):
        arguments_for(schema, ToolRequest(text="hello"))


def test_the_tools_of_a_server_are_called_like_our_own():
    pytest.importorskip("mcp")

    async def session() -> None:
        async with mcp_tools(sys.executable, [str(SERVER)], prefix="little_") as found:
            box = Toolbox(*found)
            assert {each.name for each in box} == {"little_shout", "little_add"}
            assert box["little_shout"].description == "Say it in capitals."
            assert (await box.run("little_shout", ToolRequest(text="hi"), seconds=20)).text == "HI"
            added = await box.run("little_add", ToolRequest(text="", arguments={"a": 2, "b": 3}), seconds=20)
            assert added.text == "5"

    asyncio.run(session())
