"""How much work a query is worth."""

from __future__ import annotations

import pytest

from surefoot.decide.tools.depth import BARE, FAST, FUSED, Depth, select_depth
from surefoot.errors import ConfigError


def test_a_preferred_depth_wins_over_a_time_limit_and_the_length():
    assert select_depth("short", preferred="FUSED", max_timeout=0.1) is FUSED
    assert select_depth("short", preferred=FAST) is FAST


@pytest.mark.parametrize(("seconds", "depth"), [(2.5, BARE), (5.0, FAST), (5.1, FUSED)])
def test_a_time_limit_selects_the_deepest_that_fits(seconds: float, depth: Depth):
    assert select_depth("x" * 100, max_timeout=seconds) is depth


def test_otherwise_short_queries_are_bare():
    assert (select_depth("x" * 49), select_depth("x" * 50)) == (BARE, FAST)


def test_unknown_names_and_missing_weights_are_refused():
    with pytest.raises(ConfigError, match="bare, fast, fused"):
        select_depth("x", preferred="deep")
    with pytest.raises(ConfigError, match="2 scales and 1 weights"):
        Depth(name="x", scales=(1, 2), weights=(1.0,), retrieval="fast", k=1, bm25=0.0, timeout=1.0)
