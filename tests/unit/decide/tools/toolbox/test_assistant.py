"""Tests of `surefoot.decide.tools.toolbox.assistant`."""

from __future__ import annotations

import asyncio
import re

import pytest

from surefoot.decide.encoders.encoder import HashingEncoder
from surefoot.decide.tools.protocol import ToolRequest
from surefoot.decide.tools.toolbox.assistant import questions, tools


@pytest.fixture(scope="module")
def five(tmp_path_factory):
    five, _ = tools(HashingEncoder(), tmp_path_factory.mktemp("demo"))
    return {each.name: each for each in five}


@pytest.mark.parametrize("name", ["calc", "search", "answer", "query", "notion_write"])
def test_each_tool_answers_its_shipped_questions_correctly(five, name: str):
    pairs = questions()[name]
    assert len(pairs) >= 10
    for question, expected in pairs:
        text = asyncio.run(five[name].call(ToolRequest(text=question))).text
        first = text.splitlines()[0] if name == "search" else text
        assert re.search(expected, first), f"{question!r} got {text[:200]!r}"
