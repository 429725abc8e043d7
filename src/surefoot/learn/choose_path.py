"""Whether the kernel or torch acts and learns, and why."""

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
    """None if the kernel can stand in for this policy, else a sentence that says why not."""
    kernel, unusable = native.kernel, native.unusable()
    if unusable is not None:
        return unusable
    if not isinstance(policy, ActorCritic) or type(policy) is not ActorCritic or policy.own_module:
        return "the policy has a network of your own inside"
    config, head = policy.config, policy.head
    if policy.sequential:
        return f"the kernel does not know memory ({config.memory})"
    if policy.flatten is None:
        return "the kernel does not know images or a critic that sees more than the policy"
    if not isinstance(head, DiscreteHead | MultiDiscreteHead | GaussianHead):
        kind = "hybrid actions" if isinstance(head, HybridHead) else "beta" if config.beta else "gsde"
        return f"the kernel does not know {kind}"
    if config.activation not in kernel.ACTIVATIONS:
        return f"the kernel does not know the activation {config.activation}"
    if max(len(config.hidden), len(config.critic_hidden or ())) > kernel.MAX_DEPTH:
        return f"the network has more than {kernel.MAX_DEPTH} hidden layers"
    if len(head.choices()) > kernel.MAX_CHOICES:
        return f"there are more than {kernel.MAX_CHOICES} choices at once"
    if any(p.dtype != torch.float32 or p.device.type != "cpu" for p in policy.parameters()):
        return "the weights are not float32 on the CPU"
    if not all(p.requires_grad for p in policy.parameters()):
        return "some weights are frozen"
    return (
        None
        if _is_as_built(policy.network, config.activation)
        else "the policy's layers were changed after it was built"
    )


def _is_as_built(network: nn.Module, activation: str) -> bool:
    """True if the trunks are still linear layers and the activation in between, and the torso is ours."""
    if not isinstance(network, Trunks) or not isinstance(network.torso, Flatten):
        return False
    plain = True
    for trunk in (network.actor, network.critic):
        layers = list(trunk)
        plain &= all(type(x) is nn.Linear for x in layers[0::2])
        plain &= all(type(x) is ACTIVATIONS[activation] for x in layers[1::2])
    return plain and type(network.policy_out) is nn.Linear and type(network.value_out) is nn.Linear


def choose_path(policy: Policy, optimizer: Optimizer, config: PPOConfig) -> tuple[NativeUpdate | None, str]:
    """The kernel's update or None for torch's, and why; `path="native"` where the kernel cannot is a ConfigError."""
    if config.path == "torch":
        return None, "path is set to torch"
    reason = why_not(policy)
    if reason is None and config.temperature != 1.0:
        reason = "the kernel knows no temperature but 1"
    if reason is None and config.critic_lr_scale != 1.0:
        reason = "the kernel has one learning rate for all weights"
    if reason is not None:
        if config.path == "native":
            raise ConfigError(f"path is 'native' but {reason}; set path to 'auto' or 'torch'")
        return None, reason
    assert isinstance(policy, ActorCritic)
    update = NativeUpdate(policy, optimizer, config)
    return update, f"the kernel knows this policy ({native.instruction_set()})"
