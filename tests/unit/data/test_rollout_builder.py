"""Rollouts that are built step by step, or stream by stream."""

import numpy as np

from surefoot.data.rollout import Rollout
from surefoot.data.rollout_builder import RolloutBuilder


def step(value: float, **changes: np.ndarray) -> dict[str, np.ndarray]:
    never = np.zeros(2, bool)
    parts = {
        "obs.x": np.full((2, 3), value, np.float32),
        "action": np.array([0, 1]),
        "log_prob": np.full(2, -value),
        "value": np.array([value, 10 * value]),
        "reward": np.full(2, value),
        **dict.fromkeys(("terminated", "truncated", "start"), never),
        "valid": ~never,
    }
    return parts | changes


def test_the_successor_of_a_step_is_worth_what_the_next_step_is():
    builder = RolloutBuilder(3, 2)
    for value in (1.0, 2.0, 3.0):
        builder.add(step(value))
    rollout = builder.build(7, ahead=np.array([4.0, 40.0]))
    assert rollout.next_value.tolist() == [[2, 20], [3, 30], [4, 40]]
    assert rollout.obs["x"].shape == (3, 2, 3)
    assert (rollout.policy_version == 7).all()


def test_the_successor_of_a_truncated_step_is_worth_what_its_last_observation_is():
    builder = RolloutBuilder(2, 2)
    builder.cut(0, np.array([False, True]), np.array([-1.0, 0.5]))
    builder.add(step(1.0, truncated=np.array([False, True])))
    builder.add(step(2.0))
    rollout = builder.build(0, ahead=np.zeros(2))
    assert rollout.next_value.tolist() == [[2, 0.5], [0, 0]]


def test_what_is_dropped_is_not_valid():
    builder = RolloutBuilder(3, 2)
    for value in (1.0, 2.0, 3.0):
        builder.add(step(value))
    builder.dropped.append((1, 2, 0))
    builder.exclude_dropped()
    assert builder.build(0, ahead=np.zeros(2)).valid.tolist() == [[True, True], [False, True], [False, True]]


def test_streams_may_be_at_different_steps_and_rows_that_nobody_writes_allow_everything():
    builder = RolloutBuilder(2, 2)
    parts = {name: x[:1] for name, x in step(1.0, next_value=np.zeros(2)).items()}
    parts["action_mask"] = np.array([[True, False]])
    builder.write((np.array([1]), np.array([0])), 1, parts)
    rollout = builder.build(0, steps=2)
    assert rollout.reward.tolist() == [[0, 0], [1, 0]]
    assert rollout.action_mask is not None
    assert rollout.action_mask.tolist() == [[[True, True], [True, True]], [[True, False], [True, True]]]


def test_a_rollout_is_the_same_after_it_was_taken_apart():
    builder = RolloutBuilder(1, 2)
    builder.add(step(1.0))
    rollout = builder.build(3, ahead=np.ones(2), context={"h": np.zeros((2, 4))}, stats={"n": 2.0})
    again = Rollout.from_arrays(rollout.arrays(), rollout.stats)
    assert again.stats == {"n": 2.0}
    assert {name: x.tolist() for name, x in again.arrays().items()} == {
        name: x.tolist() for name, x in rollout.arrays().items()
    }
    assert {"obs.x", "context.h"} < set(rollout.arrays())
