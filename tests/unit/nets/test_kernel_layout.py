"""The kernel works on the policy's own memory."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from surefoot import native
from surefoot.data.spaces import Box
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.nets.kernel_layout import KernelNet
from surefoot.nets.policy import PolicyInput

needs_kernel = pytest.mark.skipif(native.kernel is None, reason=native.why_not)
OBS = {"obs": Box((3,))}
REACH = Box((2,), -1.0, 1.0)


@needs_kernel
def test_the_kernel_sees_weights_as_they_are_now_even_where_they_moved():
    policy = ActorCritic(OBS, REACH, NetConfig(hidden=(5,), normalize_obs=True))
    net, obs = KernelNet(policy), np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)

    def values() -> np.ndarray:
        out = np.empty(4, np.float32)
        net.kernel.net_values(net.net, 4, obs, out)
        return out

    def expected() -> np.ndarray:
        with torch.no_grad():
            return policy.value(PolicyInput(obs={"obs": torch.from_numpy(obs)})).numpy()

    net.refresh()
    np.testing.assert_allclose(values(), expected(), rtol=1e-5)
    with torch.no_grad():
        policy.network.value_out.bias += 3.0  # in place
    policy.absorb({"obs": obs})  # the normaliser's numbers are read where they lie
    net.refresh()
    np.testing.assert_allclose(values(), expected(), rtol=1e-5)
    for parameter in policy.parameters():  # new memory, as torch's .data = … gives
        parameter.data = parameter.data.clone() + 0.1
    net.refresh()
    np.testing.assert_allclose(values(), expected(), rtol=1e-5)
