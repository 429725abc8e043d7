"""Steps taken with torch; tests/unit/train/collect/test_collector.py has what a rollout made of them contains."""

from __future__ import annotations

import numpy as np
import torch

from surefoot.envs.builtin.classic import CLASSIC
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.nets.policy import PolicyInput
from surefoot.train.collect.collector import Collector
from surefoot.train.collect.torch_steps import collect_with_torch


def test_the_values_after_the_last_step_are_those_of_the_view_and_memory_that_the_collector_is_left_with():
    world = CLASSIC["Pendulum-v1"](3)
    policy = ActorCritic(world.observation, world.action, NetConfig(memory="gru", memory_size=4), seed=1)
    collector = Collector(world, policy, steps=12, gamma=0.9, seed=1, path="torch")
    steps = collect_with_torch(collector)
    assert steps.builder.steps == 12
    assert collector.env_steps == 36
    assert not steps.context["memory"].any()
    assert collector.context["memory"].any()
    now = PolicyInput.from_arrays(collector.view.obs, start=collector.start, context=collector.context)
    with torch.no_grad():
        np.testing.assert_array_equal(steps.ahead, policy.value(now).numpy())
