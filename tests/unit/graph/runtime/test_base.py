"""What all runtime nodes share: ticks and seeds."""

from surefoot.graph.runtime.base import node_seed, ticks_for


def test_ticks_are_whole_rollouts() -> None:
    assert ticks_for(100, 8, 32) == 32
    assert ticks_for(257, 8, 32) == 64
    assert ticks_for(10, 1, 4, 6) == 12
    assert ticks_for(5, 0) == 5
    assert node_seed("a", 0) != node_seed("b", 0) < 2**31
