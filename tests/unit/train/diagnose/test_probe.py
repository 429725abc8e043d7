"""Probes pass what is right and catch what they are for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from surefoot.envs.make import make_world
from surefoot.train.diagnose.probe import probe
from surefoot.train.training import Training

pytestmark = pytest.mark.slow


def failed(**how: Any) -> set[str]:
    return {result.id for result in probe(**how) if not result.passed}


def faulty(change: Any) -> Any:
    """A trainer whose rollouts are spoiled on their way to the learner."""

    def trainer(spec: Any, world: Any, policy: Any) -> Training:
        training = Training(spec, world=world, policy=policy)
        collect = training.collector.collect

        def spoiled(policy_version: int = 0) -> Any:
            rollout = collect(policy_version)
            change(rollout)
            return rollout

        training.collector.collect = spoiled
        return training

    return trainer


def test_the_engine_passes_all_of_them_on_a_world_too():
    assert failed(make=lambda streams, workers=0, /: make_world("CartPole-v1", streams)) == set()


def test_a_missing_bootstrap_is_caught():
    def without(rollout: Any) -> None:
        rollout.next_value[-1] = 0.0
        rollout.next_value[rollout.truncated] = 0.0

    assert failed(trainer=faulty(without), only={"P1", "P2", "P6"}) == {"P1", "P6"}


def test_a_wrong_sign_is_caught():
    def flip(rollout: Any) -> None:
        np.negative(rollout.reward, out=rollout.reward)

    assert failed(trainer=faulty(flip), only={"P2", "P4", "P5"}) == {"P2", "P4", "P5"}


def test_a_time_limit_taken_for_an_end_is_caught_by_its_own_probe_alone():
    def ends(rollout: Any) -> None:
        np.logical_or(rollout.terminated, rollout.truncated, out=rollout.terminated)
        rollout.truncated[:] = False

    assert failed(trainer=faulty(ends), only={"P1", "P6", "P6B"}) == {"P6"}


def test_a_ratio_that_is_not_1_is_caught():
    def other(rollout: Any) -> None:
        np.add(rollout.log_prob, np.float32(0.01), out=rollout.log_prob)

    assert failed(trainer=faulty(other), only={"P7"}) == {"P7"}


def test_a_policy_that_never_sees_its_observations_is_caught():
    from surefoot.nets.actor_critic import ActorCritic

    class Blind(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(1))

        def forward(self, obs: Any) -> Any:
            return self.scale * torch.ones(len(obs["obs"]), 4)

    def build(world: Any) -> ActorCritic:
        return ActorCritic(world.observation, world.action, torso=Blind())

    assert failed(build=build, only={"P2"}) == {"P2"}
