"""What the kernel can run, and why not."""

from __future__ import annotations

import pytest
from torch import nn

from surefoot import native
from surefoot.data.spaces import Box, Discrete
from surefoot.errors import PolicyError
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.kernel_layout import KernelNet
from surefoot.nets.kernel_support import why_not

needs_kernel = pytest.mark.skipif(native.kernel is None, reason=native.why_not)
OBS = {"obs": Box((3,))}


def swap(policy: ActorCritic, at: int, layer: nn.Module) -> None:
    policy.network.actor[at] = layer


def tie(policy: ActorCritic) -> None:
    policy.network.critic[0].weight = policy.network.actor[0].weight


def set_forward(policy: ActorCritic) -> None:
    policy.network.actor[1].forward = lambda x: x


REASONS = {
    "frozen": (lambda p: p.network.actor[0].weight.requires_grad_(False), "frozen"),
    "half": (lambda p: p.half(), "not float32"),
    "hook": (lambda p: p.network.actor[1].register_forward_hook(lambda m, i, o: o), "hooks"),
    "gradient hook": (lambda p: p.network.actor[0].weight.register_hook(lambda g: g), "hooks"),
    "method": (set_forward, "replaced method"),
    "activation": (lambda p: swap(p, 1, nn.Identity()), "replaced"),
    "no bias": (lambda p: swap(p, 0, nn.Linear(3, 64, bias=False)), "no bias"),
    "slope": (lambda p: [swap(p, i, nn.LeakyReLU(0.3)) for i in (1, 3)] and p.network.critic, "replaced"),
    "approximate gelu": (lambda p: [swap(p, i, nn.GELU("tanh")) for i in (1, 3)], "replaced"),
    "transposed": (lambda p: setattr(p.network.actor[2].weight, "data", p.network.actor[2].weight.data.t()), "views"),
    "tied": (tie, "share"),
    "norm": (lambda p: nn.utils.parametrizations.weight_norm(p.network.actor[0]), "replaced"),
}


@needs_kernel
@pytest.mark.parametrize("name", REASONS)
def test_a_change_of_the_policy_is_seen_and_named(name):
    change, reason = REASONS[name]
    policy = ActorCritic(OBS, Discrete(2))
    net = KernelNet(policy)
    assert net.unchanged()
    change(policy)
    assert not net.unchanged()
    assert reason in str(why_not(policy))
    with pytest.raises(PolicyError, match=reason):
        KernelNet(policy)


@needs_kernel
def test_hooks_on_every_module_of_torch_are_seen():
    policy = ActorCritic(OBS, Discrete(2))
    net = KernelNet(policy)
    handle = nn.modules.module.register_module_forward_hook(lambda m, i, o: None)
    try:
        assert not net.unchanged()
        assert "hooks" in str(why_not(policy))
    finally:
        handle.remove()
    assert net.unchanged()


@needs_kernel
def test_a_layer_that_does_not_fit_the_next_one_is_named():
    policy = ActorCritic(OBS, Discrete(2))
    swap(policy, 0, nn.Linear(3, 8))
    with pytest.raises(PolicyError, match=r"a weight \[64, 64\] and a bias \[64\] but gets 8 inputs"):
        why_not(policy)
