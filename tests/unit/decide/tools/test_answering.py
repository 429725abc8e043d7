"""Tests of `surefoot.decide.tools.answering`."""

from __future__ import annotations

import asyncio
import time

import pytest

from surefoot.decide.encoders.encoder import HashingEncoder
from surefoot.decide.tools import ToolAgent, tool
from surefoot.decide.tools.answering import Answering, Workshop
from surefoot.decide.tools.depth import BARE, Depth
from surefoot.decide.tools.run import ToolRun
from surefoot.decide.tools.toolbox import assistant

from .agent_cases import agent


def answering(owner: ToolAgent, query: str, depth: Depth = BARE) -> Answering:
    workshop = Workshop(owner.agent, owner.memory, owner.toolbox, owner.thresholds)
    return Answering(workshop, query, depth, owner.agent.options.names)


def run(owner: ToolAgent, query: str, depth: Depth = BARE) -> ToolRun:
    return asyncio.run(answering(owner, query, depth).run({}, greedy=True, metadata={"user": 7}))


def test_the_preview_is_the_distribution_that_a_run_logs(encoder):
    owner = agent(encoder)
    preview = answering(owner, "will it rain").preview()
    assert run(owner, "will it rain").trace.probabilities == pytest.approx(preview)
    assert sum(preview.values()) == pytest.approx(1.0)


def test_a_foreign_exception_is_recorded_with_a_warning(encoder):
    @tool
    def buggy(text: str) -> str:
        """Divide by zero."""
        return str(1 / 0)

    result = run(ToolAgent([buggy], encoder=encoder), "divide")
    assert result.trace.errors == [
        {"stage": "tool_execution", "type": "ZeroDivisionError", "error": "division by zero"}
    ]
    assert "not a SurefootError" in result.trace.warnings[0]
    assert result.metadata["status"] == "error"
    assert result.metadata["user"] == 7


def test_the_tool_gets_the_remaining_time_of_the_depth(encoder):
    @tool
    def slow(text: str) -> str:
        """Sleep for a while."""
        time.sleep(0.5)
        return "late"

    short = Depth(name="short", scales=(96,), weights=(1.0,), retrieval="fast", k=1, bm25=0.0, timeout=0.1)
    result = run(ToolAgent([slow], encoder=encoder), "sleep", short)
    assert "did not finish within 0.1 s" in result.response
    assert result.trace.duration_ms < 450


def test_abstaining_runs_no_tool(encoder):
    result = run(agent(encoder, abstain_below=1.0), "quantum chromodynamics")
    assert (result.tool, result.response, result.decision) == ("none", "no tool fits the query", None)


def test_a_tool_may_use_all_of_the_remaining_time(encoder):
    @tool
    def steady(text: str) -> str:
        """Take more than the 50 ms that every tool gets at least."""
        time.sleep(0.15)
        return "in time"

    assert run(ToolAgent([steady], encoder=encoder), "go").response == "in time"


def test_an_expression_without_words_goes_to_the_calculator(tmp_path):
    encoder = HashingEncoder()
    agent = ToolAgent(assistant.tools(encoder, tmp_path)[0], encoder=encoder)
    for query in ("what is 12 * 7?", "sqrt(16)+2**10"):
        assert agent.answer(query, greedy=True).tool == "calc"
