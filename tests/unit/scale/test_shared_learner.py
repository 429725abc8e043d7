"""Moments of what several processes saw; tests/e2e compares whole updates with those of one process."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from surefoot.data.spaces import Box, Discrete
from surefoot.errors import ConfigError
from surefoot.learn.config import PPOConfig
from surefoot.nets.actor_critic import ActorCritic
from surefoot.scale.process_group import ProcessGroup
from surefoot.scale.shared_learner import SharedLearner, _pooled, moments_of_all

NUMBERS = [np.array([1.0, 2.0, 6.0]), np.array([]), np.array([-4.0])]


class Group:
    """What the others would say is known beforehand."""

    rank, size = 0, 3

    def gather(self, mine: np.ndarray) -> np.ndarray:
        rows = [np.array([x.mean(), x.var(), x.size]) if x.size else np.zeros(3) for x in NUMBERS]
        assert np.array_equal(mine, rows[0])
        return np.array(rows)


GROUP = cast(ProcessGroup, Group())


def test_processes_that_saw_nothing_are_left_out():
    assert moments_of_all(GROUP, NUMBERS[0]) == [(3.0, pytest.approx(14 / 3), 3.0), (-4.0, 0.0, 1.0)]


def test_pooled_moments_are_those_of_all_numbers_together():
    together = np.concatenate(NUMBERS)
    assert _pooled(GROUP, NUMBERS[0]) == pytest.approx((together.mean(), together.var(), 4))


def test_a_temperature_is_refused():
    policy: Any = ActorCritic({"obs": Box((2,))}, Discrete(2))
    with pytest.raises(ConfigError, match="does not support temperature"):
        SharedLearner(policy, PPOConfig(temperature=2.0), GROUP)
