"""Two levels: sub-goals and the manager that sets them."""

import numpy as np
import pytest

from surefoot.errors import ConfigError
from surefoot.graph.runtime.hierarchy import HighLevelPPONode, SubGoalNode
from surefoot.graph.runtime.worlds import EnvironmentNode


def test_observations_have_the_distance_to_the_sub_goal_as_a_part() -> None:
    env = EnvironmentNode(env_id="surefoot/LongMaze-v0", num_envs=3, seed=1)
    manager, goals = HighLevelPPONode(hidden=[8], path="torch"), SubGoalNode()
    world, first = env()
    assert manager(world) == (manager, None, None)
    inner, obs = goals(world, manager, first=first)
    assert set(obs) == {"obs", "goal"}
    assert obs["goal"].shape == (3, 2)
    assert np.array_equal(goals.current["goal"], obs["goal"])
    assert inner is manager.world


def test_the_manager_discounts_by_the_steps_of_a_sub_goal() -> None:
    manager = HighLevelPPONode(gamma=0.9, steps_per_goal=3)
    assert manager.config.gamma == pytest.approx(0.729)


def test_rooms_need_a_maze() -> None:
    env = EnvironmentNode(env_id="CartPole-v1", num_envs=2)
    world, first = env()
    with pytest.raises(ConfigError, match='CartPole-v1 has no rooms.*goals="offsets"'):
        SubGoalNode()(world, HighLevelPPONode(), first=first)
