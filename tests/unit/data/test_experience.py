"""Steps that were recorded one by one become one dense rollout."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from surefoot.data.experience import RecordedStep, rollout_of
from surefoot.errors import ShapeError


def step(reward: float = 0.0, *, candidates: int = 2, value: float = 0.5, **outcome) -> RecordedStep:
    return RecordedStep(
        obs={"x": np.arange(candidates, dtype=np.float32)},
        action=1,
        log_prob=-0.5,
        value=value,
        policy_version=3,
        reward=reward,
        action_mask=np.ones(candidates, bool),
        **outcome,
    )


def test_a_step_that_stands_alone_is_an_episode():
    rollout = rollout_of([[step(1.0)]])
    assert rollout.reward.tolist() == [[1.0]]
    assert rollout.terminated.all()
    assert rollout.next_value.tolist() == [[0.0]]


def test_the_next_value_of_a_step_is_the_value_of_its_successor():
    rollout = rollout_of([[step(1.0, value=0.1, terminated=False), step(2.0, value=0.2)], [step(3.0)]])
    assert rollout.reward.tolist() == [[1.0, 3.0], [2.0, 0.0]]
    assert rollout.start.tolist() == [[True, True], [False, False]]
    assert rollout.valid.tolist() == [[True, True], [True, False]]
    assert rollout.next_value[0, 0] == pytest.approx(0.2)


def test_a_truncated_episode_is_worth_its_bootstrap():
    rollout = rollout_of([[step(terminated=False, truncated=True, bootstrap=0.7)]])
    assert rollout.next_value[0, 0] == pytest.approx(0.7)
    assert rollout.truncated[0, 0]


def test_rows_of_candidates_are_padded_and_masked_at_their_end():
    rollout = rollout_of([[step(candidates=2)], [step(candidates=3)]])
    assert rollout.action_mask is not None
    assert rollout.action_mask[0].tolist() == [[True, True, False], [True, True, True]]
    assert rollout.obs["x"][0].tolist() == [[0, 1, 0], [0, 1, 2]]


def test_masks_for_some_steps_only_and_other_ranks_are_refused():
    with pytest.raises(ShapeError, match="some decisions have an action mask"):
        rollout_of([[step()], [dataclasses.replace(step(), action_mask=None)]])
    with pytest.raises(ShapeError, match=r"obs\['x'\] of step 0 of episode 1 is \[1, 2\]"):
        rollout_of([[step()], [dataclasses.replace(step(), obs={"x": np.zeros((1, 2), np.float32)})]])
