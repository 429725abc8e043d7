"""What the kernel gets of a policy with memory."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot import native
from surefoot.data.spaces import Box, Discrete
from surefoot.envs.builtin.classic import CLASSIC
from surefoot.learn.config import PPOConfig
from surefoot.learn.native_columns import columns_of, memories
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.nets.kernel_layout import KernelNet
from surefoot.train.collect.collector import Collector

pytestmark = pytest.mark.skipif(native.kernel is None, reason=native.why_not)


def batch_of(**settings):
    world = CLASSIC["CartPole-v1"](3)
    policy = ActorCritic({"obs": Box((4,))}, Discrete(2), NetConfig(memory="lstm", memory_size=5), seed=1)
    rollout = Collector(world, policy, steps=20, gamma=0.9, seed=1).collect()
    return rollout, columns_of(KernelNet(policy), PPOConfig(**settings), rollout, rollout.valid)[0]


def test_rows_are_columns_of_streams_time_first():
    rollout, batch = batch_of()
    assert batch["length"] == 20
    assert batch["valid"] is None
    np.testing.assert_array_equal(batch["features"].reshape(20, 3, 4), rollout.obs["obs"])
    np.testing.assert_array_equal(batch["start"].reshape(20, 3), rollout.start)
    np.testing.assert_array_equal(batch["context"]["critic_memory"], rollout.context["critic_memory"])


def test_streams_are_cut_into_sequences_of_which_each_step_is_learned_once():
    _, batch = batch_of(sequence=8, burn_in=2)
    assert batch["length"] == 10
    assert len(batch["start"]) == 10 * 9  # three columns of each of three streams
    assert batch["valid"].sum() == 60
    assert batch["context"]["memory"].shape == (9, 10)


def test_memories_are_named_as_the_kernel_names_them():
    start, state = np.zeros(4, bool), np.zeros((2, 5), np.float32)
    named = memories(2, start, None, {"memory": state})
    assert named.keys() == {"length", "start", "valid", "carry", "critic_carry"}
    assert named["carry"] is state
    assert named["critic_carry"] is None
