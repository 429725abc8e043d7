"""Tests of `surefoot.decide.tools.agent`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from surefoot.compat.hololoom import WeavingShuttle
from surefoot.decide.policy.replay import ReplayChooser
from surefoot.decide.promotion import GateConfig
from surefoot.decide.tools import ToolAgent, tool
from surefoot.errors import ConfigError, ToolError

from .agent_cases import agent


@tool
def broken(text: str) -> str:
    """Always fails on purpose."""
    raise ToolError("as promised")


def test_a_query_is_answered_by_a_tool_that_really_ran_and_the_trace_records_how(encoder):
    tool_agent = agent(encoder)
    tool_agent.memory.add("Rain is water that falls.", "rain")
    run = tool_agent.answer("will there be rain and what temperature?", metadata={"user": 7})
    assert (run.tool, run.response, run.metadata["user"]) == ("weather", "sunny", 7)
    assert set(run.trace.stage_ms) == {"feature_extraction", "retrieval", "convergence", "tool_execution"}
    assert "QUESTION" in run.trace.cues
    assert run.trace.context_ids == ["rain"]
    assert sum(run.trace.probabilities.values()) == pytest.approx(1.0)
    assert run.decision is not None
    assert run.decision.id == run.id


def test_an_error_of_a_tool_is_in_the_trace_and_costs_reward(encoder):
    tool_agent = ToolAgent([broken], encoder=encoder)
    run = tool_agent.answer("fail on purpose")
    assert run.trace.errors == [{"stage": "tool_execution", "type": "ToolError", "error": "as promised"}]
    assert (run.tool, run.confidence) == ("broken", 0.0)
    assert tool_agent.feedback(run).value < 0
    assert run.decision is not None, "a choice that failed is learned from"


def learner(tool_agent: ToolAgent) -> ReplayChooser:
    """The default policy."""
    assert isinstance(tool_agent.chooser, ReplayChooser)
    return tool_agent.chooser


def test_feedback_is_learned_from_once_and_changes_the_choice(encoder):
    tool_agent = agent(encoder)
    first = tool_agent.answer("some song", greedy=True).tool
    other = "weather" if first == "music" else "music"
    for _ in range(40):
        run = tool_agent.answer("some song")
        tool_agent.feedback(run, {"helpful": run.tool == other})
        tool_agent.learn()
    assert learner(tool_agent).outcomes == 40
    assert tool_agent.answer("some song", greedy=True).tool == other
    assert "some song" in str(tool_agent.explain(run))
    tool_agent.feedback(run, {"helpful": True})
    tool_agent.learn()
    assert learner(tool_agent).outcomes == 40, "feedback on a known run is no new run"


def test_runs_of_an_earlier_process_are_learned_with_the_same_digits(encoder, tmp_path: Path):
    def answer_twelve(tool_agent: ToolAgent) -> None:
        for n in range(12):
            run = tool_agent.answer(f"song {n % 3}")
            tool_agent.feedback(run, {"helpful": run.tool == "weather"})

    at_once, later = agent(encoder, directory=tmp_path / "a"), agent(encoder, directory=tmp_path / "b")
    answer_twelve(at_once)
    answer_twelve(later)
    at_once.learn()
    later.runs.close()
    again = agent(encoder, directory=tmp_path / "b")
    again.learn()
    assert np.array_equal(learner(at_once).state()["table"], learner(again).state()["table"])
    assert learner(again).outcomes == 12


def test_a_tool_below_its_threshold_is_left_out_before_the_draw(encoder):
    tool_agent = agent(encoder)
    tool_agent.thresholds["music"] = 1.1
    run = tool_agent.answer("play a song and music")
    assert run.tool == "weather"
    assert run.trace.probabilities == {"weather": pytest.approx(1.0)}, "the probability is the true one"
    tool_agent.thresholds["weather"] = 1.1
    assert tool_agent.answer("play a song and music").tool == "music", "if none is likely enough, all may be taken"


def test_answer_inside_an_event_loop_names_the_alternative(encoder):
    tool_agent = agent(encoder)

    async def inside() -> None:
        with pytest.raises(ConfigError, match="await"):
            tool_agent.answer("x")
        assert (await tool_agent.answer_async("play a song")).response == "playing"

    asyncio.run(inside())


def test_a_kept_version_goes_live_only_through_the_gate(encoder, tmp_path: Path):
    with agent(encoder, directory=tmp_path) as tool_agent:
        for _ in range(12):
            tool_agent.feedback(tool_agent.answer("some song"), {"helpful": True})
        tool_agent.learn()
        first = tool_agent.save()
        tool_agent.learn(force=True)
        second = tool_agent.keep()
        assert tool_agent.versions is not None
        result = tool_agent.promote(second)
        assert (result.verdict, tool_agent.versions.live) == ("hold", first), "12 decisions are too few"
        result = tool_agent.promote(second, GateConfig(least_sample_size=1.0, margin=0.5))
        assert (result.verdict, tool_agent.versions.live) == ("promote", second)
        assert tool_agent.rollback("it was worse after all") == first


def test_an_agent_without_tools_is_refused_when_it_is_to_answer_and_tools_can_be_added(encoder):
    empty = ToolAgent(encoder=encoder)
    with pytest.raises(ConfigError, match="has no tools"):
        empty.answer("hello")
    with pytest.raises(ConfigError, match="has no tools"):
        WeavingShuttle(encoder=encoder).weave_sync("hello")
    empty.add_tool(broken)
    assert empty.answer("fail on purpose").tool == "broken"
