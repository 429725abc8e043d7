"""Acting with the C kernel outside of its rollouts: one step of N streams, and the critic's values."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surefoot.envs.api import Arrays, View
from surefoot.train.collect.kernel_rollout import KernelActor, carries


class KernelOutput(NamedTuple):
    """One step of N streams: what a policy chose, and what learning from it needs."""

    action: np.ndarray
    """[N, …] as the policy stores it."""
    env_action: np.ndarray
    """[N, …] as the world takes it."""
    log_prob: np.ndarray
    value: np.ndarray


def kernel_act(
    actor: KernelActor,
    view: View,
    rng: np.ndarray,
    *,
    deterministic: bool,
    start: np.ndarray | None = None,
    context: Arrays | None = None,
) -> KernelOutput:
    """Return the actions of N streams: drawn with `rng`, or the most likely ones.

    A policy with memory needs `start`, [N] bool, and the `context` of its streams, contiguous arrays that are updated.
    """
    features = np.ascontiguousarray(actor.features(view.obs), np.float32)
    shape, dtype = (len(features), *actor.shape), np.int64 if actor.net.discrete else np.float32
    log_prob, value = np.empty((2, len(features)), np.float32)
    output = KernelOutput(np.empty(shape, dtype), np.empty(shape, dtype), log_prob, value)
    actor.net.kernel.net_act(
        actor.net.net,
        n=len(features),
        rng=rng,
        obs=features,
        mask=None if view.action_mask is None else np.ascontiguousarray(view.action_mask, np.bool_),
        deterministic=deterministic,
        **output._asdict(),
        start=start,
        **carries(context),
    )
    return output


def kernel_values(actor: KernelActor, obs: Arrays, context: Arrays | None = None) -> np.ndarray:
    """Return the critic's values, [N]; a policy with memory needs the `context` of its streams."""
    carry, critic_carry = carries(context).values()
    features = np.ascontiguousarray(actor.features(obs), np.float32)
    value = np.empty(len(features), np.float32)
    actor.net.kernel.net_values(
        actor.net.net, len(features), features, carry if critic_carry is None else critic_carry, value
    )
    return value
