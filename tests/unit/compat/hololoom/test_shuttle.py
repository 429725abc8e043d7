"""The whole cycle, and every defect of the first system as something that must not happen here."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import numpy as np
import pytest

from surefoot.compat.hololoom import (
    QueryCache,
    Spacetime,
    TrainingSchedule,
    WeavingShuttle,
    decode_action,
    encode_action,
    encode_observation,
    tool,
)
from surefoot.decide.promotion import GateConfig
from surefoot.decide.tools.depth import BARE, FAST, FUSED, select_depth
from surefoot.decide.tools.query_features import VOCABULARY, detect_cues
from surefoot.errors import ConfigError, DecisionError, ToolError, UnknownOption


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


def agent(encoder, **options) -> WeavingShuttle:
    return WeavingShuttle([weather, music], encoder=encoder, **options)


def woven(tool_used: str = "a", confidence: float = 0.9, **more) -> Spacetime:
    return Spacetime(
        id=more.pop("id", f"{time.perf_counter_ns()}"),
        query_text="q",
        response="r",
        tool_used=tool_used,
        confidence=confidence,
        **more,
    )


def test_a_query_is_answered_by_a_tool_that_really_ran_and_the_trace_tells_how(encoder):
    made = agent(encoder)
    made.memory.add("Rain is water that falls.", "rain")
    found = made.weave_sync("will there be rain and what temperature?")
    assert (found.tool_used, found.response) == ("weather", "sunny")
    trace = found.trace
    assert {"feature_extraction", "retrieval", "convergence", "tool_execution"} <= set(trace.stage_durations)
    assert "QUESTION" in trace.motifs_detected
    assert (trace.context_shards_count, trace.threads_activated) == (1, ["rain"])
    assert sum(trace.tool_probabilities.values()) == pytest.approx(1.0)
    assert trace.duration_ms > 0


def test_an_error_of_a_tool_is_in_the_trace_and_costs_reward(encoder):
    made = WeavingShuttle([broken], encoder=encoder)
    found = made.weave_sync("fail on purpose")
    assert found.trace.errors == [{"stage": "tool_execution", "type": "ToolError", "error": "as promised"}]
    assert (found.tool_used, found.confidence) == ("broken", 0.0)
    assert made.reflect_sync(found).value < 0
    assert found.decision is not None, "a choice that failed is learned from"


def test_the_likeliest_tool_is_taken_with_the_confidence_of_its_worth(encoder):
    made = agent(encoder)
    sampled, greedy = (
        made.weave_sync("play music, songs and albums"),
        made.weave_sync("play music, songs and albums", greedy=True),
    )
    assert greedy.confidence == pytest.approx(sampled.confidence)
    assert greedy.confidence > 0.5


def test_the_policy_outlives_its_queries_and_learns(encoder):
    # There, it was built anew with random weights for every query.
    made = agent(encoder)
    core = made.policy.core
    first = made.weave_sync("some song", greedy=True).tool_used
    other = "weather" if first == "music" else "music"
    for _ in range(40):
        found = made.weave_sync("some song")
        made.reflect_sync(found, {"helpful": found.tool_used == other})
        made.learn_sync()
    assert made.policy.core is core
    assert made.weave_sync("some song", greedy=True).tool_used == other
    assert "some song" in str(made.explain(found))


def test_the_log_prob_learned_with_is_the_one_of_the_choice(encoder):
    # There, it was computed at training time with the weights of then.
    found = agent(encoder).weave_sync("some song")
    assert found.decision is not None
    choice = found.decision.choice
    assert choice.probability == choice.probabilities[choice.at]
    assert found.trace.tool_probabilities[found.tool_used] == pytest.approx(choice.probability)


def test_it_learns_by_itself_on_the_side_and_goes_on_after_a_restart(encoder, tmp_path: Path):
    plan = TrainingSchedule(warmup=10, interval=5, min_samples=10, lr_after={20: 1e-4})
    with agent(encoder, directory=tmp_path / "run", learning=plan) as made:
        for _ in range(60):
            found = made.weave_sync("some song")
            made.reflect_sync(found, {"helpful": found.tool_used == "weather"})
            made.wait()
        made.learn_sync(force=True)
        assert made.policy.core.learner.updates > 0
        assert made.policy.core.learner.knobs().lr == pytest.approx(1e-4)
        version, p = made.policy.version, made.policy.core.policy.weight.detach().numpy().copy()
    with agent(encoder, directory=tmp_path / "run") as again:
        assert again.policy.version == version
        assert np.array_equal(again.policy.core.policy.weight.detach().numpy(), p)
        assert len(again.buffer) == 60
    assert (tmp_path / "run" / "telemetry.ndjson").exists()


def test_tools_come_and_go_without_training(encoder):
    made = agent(encoder)
    with pytest.raises(ToolError, match="already exists"):
        made.add_tool(music)

    @tool
    def translate(text: str) -> str:
        """Translate a sentence into another language."""
        return "traduit"

    made.add_tool(translate)
    assert made.weave_sync("translate this sentence into another language").tool_used == "translate"
    made.remove_tool("translate")
    assert made.weave_sync("translate this sentence into another language").tool_used != "translate"


def test_a_cached_answer_is_a_copy_and_belongs_to_one_policy(encoder):
    # There, the key was the text alone, the object was shared, and misses were counted twice.
    cache = QueryCache(max_size=2, ttl_seconds=10)
    made = agent(encoder, cache=cache)
    first = made.weave_sync("play a song")
    second = made.weave_sync("play a song")
    assert (cache.stats.hits, cache.stats.misses, cache.stats.size) == (1, 1, 1)
    second.add_quality_score(0.1)
    second.metadata["x"] = 1
    third = made.weave_sync("play a song")
    assert third.quality_score is None
    assert "x" not in third.metadata
    assert third.decision is None, "nothing was chosen, so nothing can be learned"
    with pytest.raises(DecisionError, match="no decision to explain"):
        made.explain(third)
    made.weave_sync("play a song", allowed=["music"])
    made.weave_sync("play a song", pattern="fused")
    assert cache.stats.misses == 3
    made.reflect_sync(first, {"helpful": True})
    made.learn_sync()
    assert "cached" not in made.weave_sync("play a song").metadata, "another policy may choose another tool"
    assert "cached" not in made.weave_sync("play a song", bypass_cache=True).metadata


def test_the_cache_forgets_by_age_and_by_use():
    now = [0.0]
    cache = QueryCache(max_size=2, ttl_seconds=5.0, clock=lambda: now[0])
    keys = [QueryCache.key(text, "bare", ("a",), 0) for text in "abc"]
    cache.put(keys[0], woven())
    cache.put(keys[1], woven())
    assert cache.get(keys[0]) is not None
    cache.put(keys[2], woven())
    assert cache.get(keys[1]) is None, "the one not used for longest went"
    now[0] = 6.0
    assert cache.get(keys[0]) is None
    assert cache.stats.hit_rate == pytest.approx(1 / 3)


def test_every_motif_the_detector_finds_is_one_the_policy_knows():
    # There, the two vocabularies had nothing in common.
    found = detect_cues("Hi, please calculate 3 * 4 if the reward model isn't better, because I need a note today? `x`")
    assert set(found) <= set(VOCABULARY)
    assert {"CALCULATE", "CONDITION", "ALGORITHM", "NEGATION", "CAUSE", "GOAL", "NOTE", "TIME", "CODE"} <= set(found)


def test_observations_are_encoded_by_hand():
    row = encode_observation(
        {
            "motifs_detected": ["QUESTION", "NOTE"],
            "embedding_scales_used": [96, 192],
            "context_shards_count": 5,
            "retrieval_mode": "fused",
            "threads_activated_count": 50,
        }
    )
    assert row[: len(VOCABULARY)].sum() == 2
    assert row[VOCABULARY.index("NOTE")] == 1
    assert row[len(VOCABULARY) :].tolist() == pytest.approx([0.5, 2 / 3, 1.0, 0.0, 1.0])
    with pytest.raises(ConfigError, match="unknown cue"):
        encode_observation({"motifs_detected": ["thompson"]})


def test_the_seeds_five_tools_keep_their_indices_and_others_follow(encoder):
    assert [decode_action(i) for i in range(5)] == ["answer", "search", "calc", "notion_write", "query"]
    assert encode_action("calc") == 2
    with pytest.raises(UnknownOption, match="tool 'fly'"):
        encode_action("fly")
    made = agent(encoder)
    assert (made.agent.agent.options.index("weather"), made.agent.agent.options.index("calc")) == (5, 2)


def test_cards_are_chosen_by_wish_then_time_then_length():
    assert select_depth("short", preferred="FUSED") is FUSED
    assert [select_depth("x", max_timeout=t) for t in (2.0, 4.0, 9.0)] == [BARE, FAST, FUSED]
    assert [select_depth("x" * n) for n in (10, 100, 500)] == [BARE, FAST, FAST]
    with pytest.raises(ConfigError, match="unknown depth 'silk'"):
        select_depth("x", preferred="silk")


def test_retrieval_with_every_card_works_at_every_scale(encoder):
    # There, the cards named scales that the embedder did not have: KeyError 96.
    made = agent(encoder)
    for i in range(12):
        made.memory.add(f"fact number {i} about music and rain", f"f{i}")
    counts = [made.weave_sync("music", pattern=card).trace.context_shards_count for card in ("bare", "fast", "fused")]
    assert counts == [3, 6, 10]


def test_weave_sync_inside_a_loop_says_what_to_do(encoder):
    made = agent(encoder)

    async def inside() -> None:
        with pytest.raises(ConfigError, match="await"):
            made.weave_sync("x")
        assert (await made.weave("play a song")).response == "playing"

    asyncio.run(inside())


def test_a_kept_version_goes_live_only_through_the_gate(encoder, tmp_path: Path):
    with agent(encoder, directory=tmp_path) as made:
        for _ in range(12):
            found = made.weave_sync("some song")
            made.reflect_sync(found, {"helpful": True})
        made.learn_sync()
        first = made.save()
        made.learn_sync(force=True)
        second = made.keep()
        assert made.versions is not None
        assert made.versions.live == first
        judged = made.promote(second)
        assert (judged.verdict, made.versions.live) == ("hold", first), "12 decisions are too few"
        judged = made.promote(second, GateConfig(least_sample_size=1.0, margin=0.5))
        assert (judged.verdict, made.versions.live) == ("promote", second)
        assert made.rollback("it was worse after all") == first
        assert [entry["what"] for entry in made.versions.history()][-3:] == ["judged", "promote", "rollback"]
