"""The parts of a rollout fit together as the collector returns it, and each change of one of them is seen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from surefoot.data.rollout import Rollout
from surefoot.envs.make import make_world
from surefoot.nets.policy import Policy
from surefoot.train.diagnose.rollout_checks import rollout_checks
from surefoot.train.spec import make_spec
from surefoot.train.training import Training


@pytest.fixture(scope="module")
def collected() -> tuple[Rollout, Policy]:
    world = make_world("CartPole-v1", 4)
    spec = make_spec("CartPole-v1", world.action, settings={"envs": 4, "rollout_steps": 64}, total_steps=1024)
    training = Training(spec, world=world)
    return training.collector.collect(), training.policy


def test_a_rollout_as_it_was_collected_contradicts_nothing(collected: tuple[Rollout, Policy]):
    stats = rollout_checks(*collected)
    assert stats == {"valid_share": 1.0, "start_error": 0.0, "next_value_error": 0.0, "value_error": 0.0}


def test_each_part_that_belongs_to_another_step_is_seen(collected: tuple[Rollout, Policy]):
    rollout, policy = collected

    def checked(**changed: np.ndarray) -> dict[str, float]:
        return rollout_checks(replace(rollout, **changed), policy)

    assert checked(terminated=np.roll(rollout.terminated, 1, axis=0))["start_error"] > 0.5
    assert checked(next_value=np.roll(rollout.next_value, 1, axis=1))["next_value_error"] > 0.5
    assert checked(value=np.roll(rollout.value, 1, axis=1))["value_error"] > 0.5
    assert checked(valid=np.arange(64)[:, None] % 4 == np.zeros((1, 4)))["valid_share"] == 0.25
