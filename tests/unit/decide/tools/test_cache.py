"""Tests of `surefoot.decide.tools.cache`."""

from __future__ import annotations

import pytest

from surefoot.decide.tools import QueryCache
from surefoot.errors import DecisionError

from .agent_cases import agent


def test_a_cached_answer_is_a_copy_and_belongs_to_one_policy(encoder):
    cache = QueryCache(max_size=2, ttl_seconds=10)
    made = agent(encoder, cache=cache)
    first, second = made.answer("play a song"), made.answer("play a song")
    assert (cache.stats.hits, cache.stats.misses, cache.stats.size) == (1, 1, 1)
    second.add_quality(0.1)
    second.metadata["x"] = 1
    third = made.answer("play a song")
    assert (third.quality, third.decision, "x" in third.metadata) == (None, None, False)
    with pytest.raises(DecisionError, match="no decision to explain"):
        made.explain(third)
    made.feedback(first, {"helpful": True})
    made.learn()
    assert "cached" not in made.answer("play a song").metadata, "another policy may choose another tool"
