"""Decides whether the kernel or torch acts and learns, with the reason."""

from __future__ import annotations

import torch

from surefoot.errors import ConfigError
from surefoot.learn.config import PPOConfig
from surefoot.learn.native import NativeUpdate
from surefoot.learn.optimizer import Optimizer
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.kernel_support import why_not
from surefoot.nets.policy import Policy

__all__ = ["choose_path", "why_not"]


def choose_path(
    policy: Policy, optimizer: Optimizer, config: PPOConfig, generator: torch.Generator
) -> tuple[NativeUpdate | None, str]:
    """Return (the kernel's update or None for torch's, the reason).

    Raise `ConfigError` for `path="native"` if the kernel cannot run this policy.
    """
    if config.path == "torch":
        return None, "path is set to torch"
    reason = why_not(policy)
    if reason is not None or not isinstance(policy, ActorCritic):
        return None, refuse_if_required(config, reason or "the policy contains a custom network")
    update = NativeUpdate(policy, optimizer, config, generator)
    return update, supported(update)


def refuse_if_required(config: PPOConfig, reason: str) -> str:
    """Return why torch has to learn; raise `ConfigError` if the settings demand the kernel."""
    if config.path == "native":
        raise ConfigError(f"path is 'native' but {reason}; set path to 'auto' or 'torch'")
    return reason


def supported(update: NativeUpdate) -> str:
    """Return the reason that a report gives for the kernel."""
    return f"the kernel supports this policy ({update.net.instruction_set})"
