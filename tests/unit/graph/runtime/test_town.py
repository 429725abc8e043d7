"""Towns in a graph: streams, what agents see, and what is counted."""

import numpy as np
import pytest

from surefoot.errors import ConfigError
from surefoot.graph.runtime.town import ConflictStatsNode, ScenarioNode, TownStepNode
from surefoot.graph.runtime.worlds import EnvironmentNode
from surefoot.graph.schedule import schedule
from surefoot.graph.spec.check import check
from surefoot.graph.templates import template


def test_streams_of_a_town_are_its_agents() -> None:
    graph = template("town")
    graph.nodes["env"].params["towns"] = 5
    assert schedule(graph).streams == 15
    assert check(graph).errors == []


def test_an_agent_that_sees_too_little_of_a_town_is_told_how_much_there_is() -> None:
    graph = template("town")
    graph.nodes["agent"].params["input_size"] = 65
    (result,) = check(graph).errors
    assert result.node == "agent"
    assert "66" in result.message


def test_what_towns_counted_is_counted_anew_after_each_look() -> None:
    env, step, stats = ScenarioNode(scenario="queue_conflict", towns=4, seed=1), TownStepNode(), ConflictStatsNode()
    world, seen = env()
    assert seen["features"].shape == (12, 66)
    assert seen["action_mask"].shape == (12, 8)
    for _ in range(10):
        step(world, np.zeros(12, np.int64))
    counts, _ = stats("complete", world)
    assert counts["rollout_ticks"] == 10
    assert stats("complete", world)[0]["rollout_ticks"] == 0
    with pytest.raises(ConfigError, match="is no town"):
        stats("complete", EnvironmentNode(env_id="CartPole-v1", num_envs=2).world)
