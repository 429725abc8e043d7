"""Functions as tools, and running one within its time."""

from __future__ import annotations

import asyncio

import pytest

from surefoot.decide.tools.protocol import Toolbox, ToolRequest, tool
from surefoot.errors import ToolError, UnknownOption


def test_a_function_becomes_a_tool_with_its_schema():
    @tool
    def convert(text: str, factor: float = 2.0, tags: list[str] | None = None) -> str:
        """Convert units of length."""
        return f"{text} times {factor}"

    assert convert.description == "Convert units of length."
    assert convert.schema["properties"]["factor"] == {"type": "number", "default": 2.0}
    assert convert.schema["properties"]["tags"] == {"type": "array", "items": {"type": "string"}}
    assert convert.schema["required"] == ["text"]
    assert asyncio.run(convert.call(ToolRequest(text="3 m", arguments={"factor": 5}))).text == "3 m times 5"


def test_a_tool_without_a_description_or_with_stars_is_refused():
    with pytest.raises(ToolError, match="no description"):
        tool(lambda text: text)
    with pytest.raises(ToolError, match="must have names"):

        @tool
        def many(*texts: str) -> str:
            """Takes anything."""
            return ""


def test_a_slow_tool_is_stopped_and_an_unknown_one_is_named():
    @tool
    async def slow(text: str) -> str:
        """Takes its time."""
        await asyncio.sleep(5)
        return text

    box = Toolbox(slow)
    with pytest.raises(ToolError, match=r"did not finish within 0\.1 s"):
        asyncio.run(box.run("slow", ToolRequest(text="x"), seconds=0.1))
    with pytest.raises(UnknownOption, match="unknown tool 'quick'"):
        asyncio.run(box.run("quick", ToolRequest(text="x"), seconds=0.1))
