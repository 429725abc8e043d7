"""The tool agent: answer, feedback, learn; versions, thresholds and files of the first release."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import numpy as np
import pytest

from surefoot.decide.encoders.encoder import HashingEncoder
from surefoot.decide.policy.ppo import PPOChooser
from surefoot.decide.promotion import GateConfig
from surefoot.decide.tools import QueryCache, ToolAgent, TrainingSchedule, tool
from surefoot.decide.tools.report import rows_in
from surefoot.errors import ConfigError, DecisionError, ToolError

RELEASE_1 = Path(__file__).parents[3] / "golden/agents/release_1"


@tool
def weather(text: str) -> str:
    """Weather forecast: rain, sun, temperature."""
    return "sunny"


@tool
def music(text: str) -> str:
    """Play music, songs and albums."""
    return "playing"


@tool
def broken(text: str) -> str:
    """Always fails on purpose."""
    raise ToolError("as promised")


def agent(encoder, **options) -> ToolAgent:
    return ToolAgent([weather, music], encoder=encoder, **options)


def core(made: ToolAgent) -> PPOChooser:
    assert isinstance(made.chooser, PPOChooser)
    return made.chooser


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


def test_it_learns_in_the_background_and_continues_after_a_restart(encoder, tmp_path: Path):
    plan = TrainingSchedule(warmup=10, interval=5, min_samples=10, lr_after={20: 1e-4})
    with agent(encoder, directory=tmp_path / "run", learning=plan) as made:
        for _ in range(60):
            run = made.answer("some song")
            made.feedback(run, {"helpful": run.tool == "weather"})
            made.wait()
        made.learn(force=True)
        assert core(made).learner.updates > 0
        assert core(made).learner.knobs().lr == pytest.approx(1e-4)
        version, weight = made.version, core(made).policy.weight.detach().numpy().copy()
    with agent(encoder, directory=tmp_path / "run") as again:
        assert again.version == version
        assert np.array_equal(core(again).policy.weight.detach().numpy(), weight)
        assert len(again.runs) == 60
    assert (tmp_path / "run" / "telemetry.ndjson").exists()


def test_a_directory_of_the_first_release_is_continued(tmp_path: Path):
    shutil.copytree(RELEASE_1, tmp_path / "agent", symlinks=True)
    with ToolAgent([weather, music], encoder=HashingEncoder(8), directory=tmp_path / "agent") as made:
        assert (len(made.runs), core(made).model.outcomes) == (8, 5)
        made.learn()
        assert (made.version, core(made).model.outcomes) == (2, 8), "three runs came after the saved version"
        last = made.runs.recent(1)[0]
        assert (last.run.tool, last.feedback["right"], last.reward) == ("weather", "weather", 1.0)
        assert str(made.explain(last.run)).startswith("weather (expected success 99%)")
        made.feedback(made.answer("some song number 2"), {"helpful": True})
    rows = rows_in(tmp_path / "agent")
    assert [row["chosen"] for row in rows] == ["weather"] * 9
    assert all(0.0 < row["probability"] <= 1.0 for row in rows)


def test_a_tool_below_its_threshold_is_left_out_before_the_draw(encoder):
    made = agent(encoder)
    made.thresholds["music"] = 1.1
    run = made.answer("play a song and music")
    assert run.tool == "weather"
    assert run.trace.probabilities == {"weather": pytest.approx(1.0)}, "the probability is the true one"
    made.thresholds["weather"] = 1.1
    assert made.answer("play a song and music").tool == "music", "if none is likely enough, all may be taken"


def test_a_cached_answer_is_a_copy_and_belongs_to_one_policy(encoder):
    cache = QueryCache(max_size=2, ttl_seconds=10)
    made = agent(encoder, cache=cache)
    first, second = made.answer("play a song"), made.answer("play a song")
    assert (cache.stats.hits, cache.stats.misses, cache.stats.size) == (1, 1, 1)
    second.add_quality(0.1)
    second.metadata["x"] = 1
    third = made.answer("play a song")
    assert (third.quality, third.decision, "x" in third.metadata) == (None, None, False)
    with pytest.raises(DecisionError, match="nothing was chosen"):
        made.explain(third)
    made.feedback(first, {"helpful": True})
    made.learn()
    assert "cached" not in made.answer("play a song").metadata, "another policy may choose another tool"


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
