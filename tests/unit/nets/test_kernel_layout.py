"""The kernel works on the policy's own memory."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from surefoot import native
from surefoot.data.spaces import Box, Discrete
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.nets.kernel_layout import KernelNet
from surefoot.nets.policy import PolicyInput
from surefoot.train.collect.kernel_act import kernel_values
from surefoot.train.collect.kernel_rollout import KernelActor

needs_kernel = pytest.mark.skipif(native.kernel is None, reason=native.why_not)
OBS = {"obs": Box((3,))}
REACH = Box((2,), -1.0, 1.0)


@needs_kernel
def test_the_kernel_sees_weights_as_they_are_now_even_where_they_moved():
    policy = ActorCritic(OBS, REACH, NetConfig(hidden=(5,), normalize_obs=True))
    actor, obs = KernelActor(policy, 0), np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)

    def values() -> np.ndarray:
        assert actor.refresh() is None
        return kernel_values(actor, {"obs": obs})

    def expected() -> np.ndarray:
        with torch.no_grad():
            return policy.value(PolicyInput(obs={"obs": torch.from_numpy(obs)})).numpy()

    np.testing.assert_allclose(values(), expected(), rtol=1e-5)
    with torch.no_grad():
        policy.network.value_out.bias += 3.0  # in place
    policy.absorb({"obs": obs})  # the normaliser's numbers are read where they lie
    np.testing.assert_allclose(values(), expected(), rtol=1e-5)
    for parameter in policy.parameters():  # new memory, as torch's .data = … gives
        parameter.data = parameter.data.clone() + 0.1
    np.testing.assert_allclose(values(), expected(), rtol=1e-5)


@needs_kernel
@pytest.mark.parametrize("width", [8, 64, 256])
def test_layers_of_another_width_run_as_they_are(width):
    policy = ActorCritic(OBS, Discrete(2))
    policy.network.actor[0], policy.network.actor[2] = nn.Linear(3, width), nn.Linear(width, 64)
    obs = np.random.default_rng(1).normal(size=(4, 3)).astype(np.float32)
    with torch.no_grad():
        expected = policy.value(PolicyInput(obs={"obs": torch.from_numpy(obs)})).numpy()
    actor = KernelActor(policy, 0)
    actor.require()
    np.testing.assert_allclose(kernel_values(actor, {"obs": obs}), expected, rtol=1e-5)


@needs_kernel
def test_the_mode_of_a_module_is_no_change_but_a_setting_is():
    policy = ActorCritic(OBS, REACH, NetConfig(normalize_obs=True))
    net = KernelNet(policy)
    policy.train(False)
    assert net.unchanged()
    assert policy.flatten is not None
    assert policy.flatten.normalizer is not None
    policy.flatten.normalizer.clip = 3.0
    assert not net.unchanged()
