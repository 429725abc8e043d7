"""What all runtime nodes share: ticks and seeds."""

import pytest

from surefoot.graph.runtime import PPOTrainerNode, RewardShapingNode
from surefoot.graph.runtime.base import built, node_seed, ticks_for
from surefoot.learn.config import PPOConfig


def test_ticks_are_whole_rollouts() -> None:
    assert ticks_for(100, 8, 32) == 32
    assert ticks_for(257, 8, 32) == 64
    assert ticks_for(10, 1, 4, 6) == 12
    assert ticks_for(5, 0) == 5
    assert node_seed("a", 0) != node_seed("b", 0) < 2**31


def test_a_config_has_the_values_of_the_parameters_that_it_declares() -> None:
    config = PPOTrainerNode(lr=0.5, rollout_steps=7).settings(PPOConfig, gamma=0.5)
    assert (config.lr, config.rollout_steps, config.gamma, config.minibatch_size) == (0.5, 7, 0.5, 64)


def test_a_node_without_state_has_an_empty_snapshot() -> None:
    node = RewardShapingNode()
    assert node.snapshot() == {}
    node.restore({})
    with pytest.raises(AssertionError, match="first tick"):
        built(None)
