"""Tests of `surefoot.decide.tools.toolbox.knowledge`."""

from __future__ import annotations

import asyncio

import pytest

from surefoot.decide.encoders.encoder import HashingEncoder
from surefoot.decide.tools.memory import TextMemory
from surefoot.decide.tools.protocol import ToolRequest, ToolResult
from surefoot.decide.tools.toolbox.knowledge import AnswerTool, SearchTool, shorten
from surefoot.errors import ToolError


@pytest.fixture
def memory() -> TextMemory:
    memory = TextMemory(HashingEncoder(128))
    memory.add("The harbour was built in 1820. It has three docks and a lighthouse.", "harbour")
    memory.add("Bees live in colonies with one queen. They make honey in summer.", "bees")
    return memory


def call(tool: SearchTool | AnswerTool, text: str, **arguments) -> ToolResult:
    return asyncio.run(tool.call(ToolRequest(text=text, arguments=arguments)))


def test_search_returns_the_best_passage_first_and_at_most_k(memory: TextMemory):
    result = call(SearchTool(memory), "who makes honey", k=1)
    assert result.sources == ["bees"]
    assert result.text.endswith("bees: Bees live in colonies with one queen. They make honey in summer.")


def test_answer_extracts_the_sentence_and_names_its_source(memory: TextMemory):
    result = call(AnswerTool(memory, memory.encoder), "When was the harbour built?")
    assert "built in 1820" in result.text
    assert "harbour" in result.sources


def test_answer_passes_question_and_passages_to_a_model(memory: TextMemory):
    async def model(question: str, passages: list[str]) -> str:
        return f"{question} {len(passages)}"

    assert call(AnswerTool(memory, memory.encoder, llm=model), "honey?").text == "honey? 2"


def test_an_empty_memory_is_reported():
    empty = TextMemory(HashingEncoder(16))
    for tool in (SearchTool(empty), AnswerTool(empty, empty.encoder)):
        with pytest.raises(ToolError, match="add_files"):
            call(tool, "anything")


def test_long_passages_are_shortened_to_one_line():
    assert shorten("a\n b", 10) == "a b"
    assert shorten("abcdef", 4) == "abc…"
