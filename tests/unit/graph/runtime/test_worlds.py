"""Environments, towns, and the nodes between them and a policy."""

import numpy as np
import pytest

from surefoot.errors import ConfigError
from surefoot.graph.run.interpreter import Interpreter
from surefoot.graph.runtime.worlds import (
    ActionProcessorNode,
    ConflictStatsNode,
    EnvironmentNode,
    RewardShapingNode,
    ScenarioNode,
    StepNode,
    TownStepNode,
)
from surefoot.graph.schedule import schedule
from surefoot.graph.spec.check import check
from surefoot.graph.spec.model import Delay, Graph
from surefoot.graph.templates import template


def small(**changes) -> Graph:
    graph = template("cartpole")
    graph.nodes["trainer"].params |= {"rollout_steps": 8, "epochs": 1, "minibatch_size": 64}
    graph.nodes["print"].params["enabled"] = False
    graph.run.total_steps, graph.run.path = 8 * 8 * 3, "torch"
    graph.nodes["trainer"].params |= changes
    return graph


def test_a_normaliser_of_its_own_moves_between_updates_only() -> None:
    graph = small()
    graph.add("norm", "ObservationNormalizer")
    graph.add("same", "Normalize")
    graph.disconnect("agent.observations")
    graph.disconnect("trainer.states")
    graph.disconnect("trainer.next_states")
    graph.connect("either.output", "norm.observations")
    graph.connect("trainer.training_complete", "norm.update", Delay())
    graph.connect("norm.observations", "agent.observations")
    graph.connect("norm.observations", "trainer.states")
    graph.connect("step.next_observations", "same.observations")
    graph.connect("norm.normalizer", "same.normalizer")
    graph.connect("same.observations", "trainer.next_states")
    with Interpreter(graph) as run:
        assert all(info["first_ratio_error"] < 1e-5 for info in run)
        assert float(run.nodes["norm"].parts["obs"].count) == 8 * 8 * 2


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
    world, obs = env()
    assert obs["features"].shape == (12, 66)
    assert obs["action_mask"].shape == (12, 8)
    for _ in range(10):
        step(world, np.zeros(12, np.int64))
    counts, _ = stats("complete", world)
    assert counts["rollout_ticks"] == 10
    assert stats("complete", world)[0]["rollout_ticks"] == 0
    with pytest.raises(ConfigError, match="is not a town"):
        stats("complete", EnvironmentNode(env_id="CartPole-v1", num_envs=2).world)


def test_rewards_are_scaled_shifted_and_clipped_by_hand() -> None:
    shaped = RewardShapingNode(scale=2.0, shift=-1.0, limit=4.0)(np.array([0.0, 1.0, 10.0]))
    assert shaped.tolist() == [-1.0, 1.0, 4.0]


@pytest.mark.parametrize(("mode", "expected"), [("none", 3.0), ("clip", 2.0), ("scale", 1.5), ("tanh", 1.990110)])
def test_actions_are_processed_by_mode(mode: str, expected: float) -> None:
    class Output:
        action = np.array([[3.0]], np.float32)

    # tanh squashes to [-2, 2]: 2 · tanh(3) = 1.990110.
    node = ActionProcessorNode(mode=mode, low=-2.0, high=2.0, factor=0.5)
    assert float(node(Output)[0, 0]) == pytest.approx(expected)  # type: ignore[arg-type]


def test_the_successor_of_a_truncated_step_is_not_the_first_observation_of_the_next_episode() -> None:
    env, step = EnvironmentNode(env_id="Pendulum-v1", num_envs=2, seed=3), StepNode()
    world, _ = env()
    for _ in range(199):
        _, _, ended, *_ = step(world, np.zeros((2, 1), np.float32))
        assert not ended.any()
    obs, _, ended, terminated, truncated, successors, *_ = step(world, np.zeros((2, 1), np.float32))
    assert ended.all()
    assert truncated.all()
    assert not terminated.any()
    assert not np.array_equal(obs["obs"], successors["obs"])
