"""Suggestions, and what a shuttle does with them."""

from __future__ import annotations

import asyncio
import time

import pytest

from surefoot.compat.hololoom import (
    ReflectionBuffer,
    Spacetime,
    WeavingShuttle,
    tool,
)
from surefoot.compat.hololoom.signals import signals_of


@tool
def weather(text: str) -> str:
    """Weather forecast: rain, sun, temperature."""
    return "sunny"


@tool
def music(text: str) -> str:
    """Play music, songs and albums."""
    return "playing"


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


def test_signals_are_found_and_acted_on(encoder):
    # There, they were only logged.
    buffer = ReflectionBuffer(learning_window=50)
    made = agent(encoder, buffer=buffer)
    for i in range(30):
        buffer.store_now(woven("weather", metadata={"pattern_card": "fused"}), {"helpful": i % 5 == 0})
    signals = asyncio.run(buffer.analyze_and_learn(force=True))
    assert [s.signal_type for s in signals] == [
        *("bandit_update", "threshold_adjustment", "pattern_preference", "threshold_adjustment")
    ]
    before = made.policy.core.config.sharpness
    done = made.apply_learning_signals(signals)
    assert len(done) == 3
    assert made.preferred_card == "fused"
    assert made.thresholds == {"weather": 0.5}
    assert made.policy.core.config.sharpness < before
    assert asyncio.run(buffer.analyze_and_learn()) == [], "not again so soon"
    assert signals_of(buffer.get_recent_episodes(9)) == []


def test_a_tool_below_its_threshold_is_left_out_before_the_draw(encoder):
    made = agent(encoder)
    made.thresholds["music"] = 1.1
    found = made.weave_sync("play a song and music")
    assert found.tool_used == "weather"
    assert found.trace.tool_probabilities == {"weather": pytest.approx(1.0)}, "the probability is the true one"
    made.thresholds["weather"] = 1.1
    assert made.weave_sync("play a song and music").tool_used == "music", "if none is likely enough, all may be taken"
