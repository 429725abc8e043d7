"""Decides whether the kernel or torch acts and learns, with the reason."""

from __future__ import annotations

import torch
from torch import nn

from surefoot import native
from surefoot.errors import ConfigError
from surefoot.learn.config import PPOConfig
from surefoot.learn.native import NativeUpdate
from surefoot.learn.optimizer import Optimizer
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.continuous_heads import GaussianHead, HybridHead
from surefoot.nets.heads import DiscreteHead, MultiDiscreteHead
from surefoot.nets.networks import Trunks
from surefoot.nets.policy import Policy
from surefoot.nets.torsos import ACTIVATIONS, Flatten


def why_not(policy: Policy) -> str | None:
    """Return why the kernel cannot run this policy, or None if it can."""
    kernel, unusable = native.kernel, native.unusable()
    if unusable is not None:
        return unusable
    # The exact type: a subclass may compute something else than the kernel would.
    if not isinstance(policy, ActorCritic) or type(policy) is not ActorCritic or policy.own_module:
        return "the policy contains a custom network"
    config, head = policy.config, policy.head
    if policy.sequential:
        return f"the kernel does not support memory ({config.memory})"
    if policy.flatten is None:
        return "the kernel does not support images or a critic that sees more than the policy"
    if not isinstance(head, DiscreteHead | MultiDiscreteHead | GaussianHead):
        kind = "hybrid actions" if isinstance(head, HybridHead) else "beta" if config.beta else "gsde"
        return f"the kernel does not support {kind}"
    if config.activation not in kernel.ACTIVATIONS:
        return f"the kernel does not support the activation {config.activation}"
    if max(len(config.hidden), len(config.critic_hidden or ())) > kernel.MAX_DEPTH:
        return f"the network has more than {kernel.MAX_DEPTH} hidden layers"
    if len(head.choices()) > kernel.MAX_CHOICES:
        return f"an action has more than {kernel.MAX_CHOICES} choices"
    if any(p.dtype != torch.float32 or p.device.type != "cpu" for p in policy.parameters()):
        return "the weights are not float32 on the CPU"
    if not all(p.requires_grad for p in policy.parameters()):
        return "some weights are frozen"
    return None if _is_as_built(policy.network, config.activation) else "the layers of the policy were replaced"


def _is_as_built(network: nn.Module, activation: str) -> bool:
    """Return True if the trunks still alternate linear layers and the activation, and the torso is the standard one."""
    if not isinstance(network, Trunks) or not isinstance(network.torso, Flatten):
        return False
    layers = [list(trunk) for trunk in (network.actor, network.critic)]
    linear = [x for trunk in layers for x in trunk[0::2]] + [network.policy_out, network.value_out]
    activations = [x for trunk in layers for x in trunk[1::2]]
    return all(type(x) is nn.Linear for x in linear) and all(type(x) is ACTIVATIONS[activation] for x in activations)


def choose_path(
    policy: Policy, optimizer: Optimizer, config: PPOConfig, generator: torch.Generator
) -> tuple[NativeUpdate | None, str]:
    """Return (the kernel's update or None for torch's, the reason).

    Raise `ConfigError` for `path="native"` if the kernel cannot run this policy.
    """
    if config.path == "torch":
        return None, "path is set to torch"
    reason = why_not(policy)
    if reason is None and config.temperature != 1.0:
        reason = "the kernel supports no temperature but 1"
    if reason is None and config.critic_lr_scale != 1.0:
        reason = "the kernel has one learning rate for all weights"
    if reason is not None:
        if config.path == "native":
            raise ConfigError(f"path is 'native' but {reason}; set path to 'auto' or 'torch'")
        return None, reason
    assert isinstance(policy, ActorCritic)
    update = NativeUpdate(policy, optimizer, config, generator)
    return update, f"the kernel supports this policy ({native.instruction_set()})"
