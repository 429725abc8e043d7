"""The tool agent: answer, feedback, learn; versions, thresholds and files of the first release."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from surefoot.decide.promotion import GateConfig
from surefoot.decide.tools import ToolAgent, tool
from surefoot.errors import ConfigError, ToolError

from .agent_cases import agent, core


@tool
def broken(text: str) -> str:
    """Always fails on purpose."""
    raise ToolError("as promised")


def test_a_query_is_answered_by_a_tool_that_really_ran_and_the_trace_tells_how(encoder):
    made = agent(encoder)
    made.memory.add("Rain is water that falls.", "rain")
    run = made.answer("will there be rain and what temperature?", metadata={"user": 7})
    assert (run.tool, run.response, run.metadata["user"]) == ("weather", "sunny", 7)
    assert set(run.trace.stage_ms) == {"feature_extraction", "retrieval", "convergence", "tool_execution"}
    assert "QUESTION" in run.trace.cues
    assert run.trace.context_ids == ["rain"]
    assert sum(run.trace.probabilities.values()) == pytest.approx(1.0)
    assert run.decision is not None
    assert run.decision.id == run.id


def test_an_error_of_a_tool_is_in_the_trace_and_costs_reward(encoder):
    made = ToolAgent([broken], encoder=encoder)
    run = made.answer("fail on purpose")
    assert run.trace.errors == [{"stage": "tool_execution", "type": "ToolError", "error": "as promised"}]
    assert (run.tool, run.confidence) == ("broken", 0.0)
    assert made.feedback(run).value < 0
    assert run.decision is not None, "a choice that failed is learned from"


def test_feedback_is_learned_from_once_and_changes_the_choice(encoder):
    made = agent(encoder)
    first = made.answer("some song", greedy=True).tool
    other = "weather" if first == "music" else "music"
    for _ in range(40):
        run = made.answer("some song")
        made.feedback(run, {"helpful": run.tool == other})
        made.learn()
    assert core(made).model.outcomes == 40
    assert made.answer("some song", greedy=True).tool == other
    assert "some song" in str(made.explain(run))
    made.feedback(run, {"helpful": True})
    made.learn()
    assert core(made).model.outcomes == 40, "feedback on a known run is no new run"


def test_what_an_earlier_process_left_is_learned_with_the_same_digits(encoder, tmp_path: Path):
    def asked(made: ToolAgent) -> None:
        for n in range(12):
            run = made.answer(f"song {n % 3}")
            made.feedback(run, {"helpful": run.tool == "weather"})

    at_once, later = agent(encoder, directory=tmp_path / "a"), agent(encoder, directory=tmp_path / "b")
    asked(at_once)
    asked(later)
    at_once.learn()
    later.runs.close()
    again = agent(encoder, directory=tmp_path / "b")
    again.learn()
    assert np.array_equal(core(at_once).model.theta(), core(again).model.theta())
    assert core(again).model.outcomes == 12


def test_a_tool_below_its_threshold_is_left_out_before_the_draw(encoder):
    made = agent(encoder)
    made.thresholds["music"] = 1.1
    run = made.answer("play a song and music")
    assert run.tool == "weather"
    assert run.trace.probabilities == {"weather": pytest.approx(1.0)}, "the probability is the true one"
    made.thresholds["weather"] = 1.1
    assert made.answer("play a song and music").tool == "music", "if none is likely enough, all may be taken"


def test_answer_inside_a_loop_says_what_to_do(encoder):
    made = agent(encoder)

    async def inside() -> None:
        with pytest.raises(ConfigError, match="await"):
            made.answer("x")
        assert (await made.answer_async("play a song")).response == "playing"

    asyncio.run(inside())


def test_a_kept_version_goes_live_only_through_the_gate(encoder, tmp_path: Path):
    with agent(encoder, directory=tmp_path) as made:
        for _ in range(12):
            made.feedback(made.answer("some song"), {"helpful": True})
        made.learn()
        first = made.save()
        made.learn(force=True)
        second = made.keep()
        assert made.versions is not None
        judged = made.promote(second)
        assert (judged.verdict, made.versions.live) == ("hold", first), "12 decisions are too few"
        judged = made.promote(second, GateConfig(least_sample_size=1.0, margin=0.5))
        assert (judged.verdict, made.versions.live) == ("promote", second)
        assert made.rollback("it was worse after all") == first
