"""Whether the kernel or torch learns, and why."""

from __future__ import annotations

from surefoot import native
from surefoot.errors import ConfigError
from surefoot.learn.config import PPOConfig
from surefoot.learn.native import NativeUpdate
from surefoot.learn.optimizer import Optimizer
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.kernel_layout import why_not
from surefoot.nets.policy import Policy


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
