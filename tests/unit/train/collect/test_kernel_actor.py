"""Actions and values by the kernel are those of the policy's own network."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from surefoot import native
from surefoot.data.spaces import Box, Discrete
from surefoot.envs.api import View
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.nets.policy import PolicyInput
from surefoot.train.collect.kernel_actor import kernel_actions, kernel_actor, kernel_values

pytestmark = pytest.mark.skipif(native.kernel is None, reason=native.why_not)
OBS = {"obs": Box((3,))}


@pytest.mark.parametrize("action", [Discrete(4, start=2), Box((2, 1), -1.0, 1.0)], ids=["discrete", "box"])
def test_most_likely_actions_and_values_are_those_of_torch(action):
    policy = ActorCritic(OBS, action, seed=3)
    actor = kernel_actor(policy, 0)
    assert actor is not None
    actor.net.refresh()
    obs = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    seen = PolicyInput(obs={"obs": torch.from_numpy(obs)})
    with torch.no_grad():
        out = policy.act(seen, generator=torch.Generator(), deterministic=True)
    actions = kernel_actions(actor, View(obs={"obs": obs}), actor.rng, deterministic=True)
    np.testing.assert_allclose(actions, policy.env_action(out.action.numpy()), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(kernel_values(actor, {"obs": obs}), out.value.numpy(), rtol=1e-5, atol=1e-6)


def test_sampled_actions_follow_the_generator_and_the_mask():
    actor = kernel_actor(ActorCritic(OBS, Discrete(3), seed=0), 0)
    assert actor is not None
    actor.net.refresh()
    mask = np.tile(np.array([True, False, True]), (64, 1))
    view, rng = View(obs={"obs": np.zeros((64, 3), np.float32)}, action_mask=mask), actor.rng.copy()
    actions = kernel_actions(actor, view, rng, deterministic=False)
    assert set(actions.tolist()) == {0, 2}
    assert actions.tolist() == kernel_actions(actor, view, actor.rng, deterministic=False).tolist()


def test_a_policy_with_memory_is_left_to_torch():
    assert kernel_actor(ActorCritic(OBS, Discrete(2), NetConfig(memory="gru", memory_size=8)), 0) is None
