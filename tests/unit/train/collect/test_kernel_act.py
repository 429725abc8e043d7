"""Acting with the kernel outside of rollouts, held to torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from surefoot import native
from surefoot.data.spaces import Box, Discrete, Hybrid, MultiDiscrete
from surefoot.envs.api import View
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.nets.policy import PolicyInput
from surefoot.train.collect.kernel_act import kernel_act, kernel_values
from surefoot.train.collect.kernel_rollout import kernel_actor

pytestmark = pytest.mark.skipif(native.kernel is None, reason=native.why_not)
PLAIN = {"obs": Box((3,))}
MIXED = {"b": Box((2,)), "a": Box((2, 2), 0.0, 255.0, "uint8")}
SPACES = {
    "discrete": (Discrete(5, start=2), {}),
    "several": (MultiDiscrete((2, 3)), {}),
    "gaussian": (Box((2, 2), -0.5, 0.5), {}),
    "squashed": (Box((2,), -2.0, 1.0), {"squash": True}),
    "gsde": (Box((2,), -1.0, 1.0), {"gsde": True, "gsde_every": 3}),
    "beta": (Box((2, 2), -0.5, 0.5), {"beta": True}),
    "hybrid": (Hybrid((2, 3), Box((2,), -2.0, 1.0)), {}),
    "hybrid squashed": (Hybrid((5,), Box((2,), -2.0, 1.0)), {"squash": True}),
    "hybrid gsde": (Hybrid((2, 3), Box((2, 2), -2.0, 1.0)), {"gsde": True}),
    "hybrid beta": (Hybrid((2, 3), Box((1,), -2.0, 1.0)), {"beta": True}),
    "gru": (Discrete(5, start=2), {"memory": "gru", "memory_size": 9}),
    "lstm": (Box((2,), -2.0, 1.0), {"memory": "lstm", "memory_size": 5, "shared": True}),
}


@pytest.mark.parametrize("kind", SPACES)
def test_most_likely_actions_and_values_are_those_of_torch(kind):
    action, net = SPACES[kind]
    policy = ActorCritic(PLAIN, action, NetConfig(**net), seed=3)
    actor = kernel_actor(policy, 0)
    assert actor is not None
    actor.require()
    rng, start, context = np.random.default_rng(0), np.ones(5, bool), policy.initial_context(5)
    arrays = {name: x.numpy().copy() for name, x in context.items()}
    for _ in range(4):
        obs = {"obs": rng.normal(size=(5, 3)).astype(np.float32)}
        inputs = PolicyInput.from_arrays(obs, start=start, context=context)
        with torch.no_grad():
            out = policy.act(inputs, generator=torch.Generator(), deterministic=True)
            after = {**context, **out.context}
            value = policy.value(PolicyInput.from_arrays(obs, context=after)).numpy()
        mine = kernel_act(actor, View(obs=obs), actor.rng, deterministic=True, start=start, context=arrays)
        np.testing.assert_allclose(mine.env_action, policy.env_action(out.action.numpy()), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(mine.value, out.value.numpy(), rtol=1e-5, atol=1e-6)
        # The value of what comes next leaves the memory as it is.
        before = {name: x.copy() for name, x in arrays.items()}
        np.testing.assert_allclose(kernel_values(actor, obs, arrays), value, rtol=1e-5, atol=1e-6)
        context, start = after, rng.random(5) < 0.5
        for name in arrays.keys() & {"memory", "critic_memory"}:
            state = context[name]
            np.testing.assert_allclose(arrays[name], state.numpy(), rtol=1e-5, atol=1e-6, err_msg=name)
            np.testing.assert_array_equal(arrays[name], before[name])


def test_sampled_actions_follow_the_generator_and_the_mask():
    actor = kernel_actor(ActorCritic(PLAIN, Discrete(3), seed=0), 0)
    assert actor is not None
    actor.require()
    mask = np.tile(np.array([True, False, True]), (64, 1))
    view, rng = View(obs={"obs": np.zeros((64, 3), np.float32)}, action_mask=mask), actor.rng.copy()
    actions = kernel_act(actor, view, rng, deterministic=False).env_action
    assert set(actions.tolist()) == {0, 2}
    assert actions.tolist() == kernel_act(actor, view, actor.rng, deterministic=False).env_action.tolist()
