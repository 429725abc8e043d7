"""The kernel as an actor outside of rollouts: actions and values of any number of streams."""

from __future__ import annotations

import numpy as np

from surefoot.envs.api import Arrays, View
from surefoot.learn.choose_path import why_not
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.policy import Policy
from surefoot.train.collect.kernel_rollout import KernelActor


def kernel_actor(policy: Policy, seed: int) -> KernelActor | None:
    """Return the kernel's actor for a policy, or None where torch must act."""
    return KernelActor(policy, seed) if isinstance(policy, ActorCritic) and why_not(policy) is None else None


def kernel_actions(actor: KernelActor, view: View, rng: np.ndarray, *, deterministic: bool) -> np.ndarray:
    """Return the actions [N, …] as the world takes them, drawn with `rng` or the most likely ones."""
    features = np.ascontiguousarray(actor.features(view.obs), np.float32)
    shape, dtype = (len(features), *actor.shape), np.int64 if actor.net.discrete else np.float32
    action, env_action = np.empty(shape, dtype), np.empty(shape, dtype)
    log_prob, value = np.empty(len(features), np.float32), np.empty(len(features), np.float32)
    actor.net.kernel.net_act(
        actor.net.net,
        n=len(features),
        rng=rng,
        obs=features,
        mask=view.action_mask,
        deterministic=deterministic,
        action=action,
        env_action=env_action,
        log_prob=log_prob,
        value=value,
    )
    return env_action


def kernel_values(actor: KernelActor, obs: Arrays) -> np.ndarray:
    """Return the critic's values [N]."""
    features = np.ascontiguousarray(actor.features(obs), np.float32)
    value = np.empty(len(features), np.float32)
    actor.net.kernel.net_values(actor.net.net, len(features), features, value)
    return value
