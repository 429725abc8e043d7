"""Checks that the parts of a rollout fit together: values, ends and starts still belong to its steps when it is learned from."""

from __future__ import annotations

import numpy as np
import torch

from surefoot.data.rollout import Rollout
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.policy import Policy, PolicyInput

# Rows whose values are computed again.
ROWS = 256


def rollout_checks(rollout: Rollout, policy: Policy) -> dict[str, float]:
    """Return the shares of steps that contradict others; all are 0 for a rollout as the collector returned it."""
    valid, ended, start = rollout.valid, rollout.ended, rollout.start
    both = valid[:-1] & valid[1:]
    stats = {"valid_share": float(valid.mean())}
    # An episode ends where the next one starts.
    boundary = both & (ended[:-1] | start[1:])
    if boundary.any():
        stats["start_error"] = float((ended[:-1] != start[1:])[boundary].mean())
    continuing = both & ~ended[:-1] & ~start[1:]
    scale = 1e-3 * float(rollout.value[valid].std()) + 1e-6 if valid.any() else 1.0
    if continuing.any():
        apart = np.abs(rollout.next_value[:-1] - rollout.value[1:])
        stats["next_value_error"] = float((apart > scale)[continuing].mean())
    return stats | _values(rollout, policy, scale)


@torch.no_grad()
def _values(rollout: Rollout, policy: Policy, scale: float) -> dict[str, float]:
    """Return the share of stored values that the policy does not give for their observation."""
    # A user's module is not called an extra time, and a sequential policy would need its memory.
    if not isinstance(policy, ActorCritic) or policy.own_module or policy.sequential:
        return {}
    rows = np.flatnonzero(rollout.valid)
    rows = rows[:: -(-len(rows) // ROWS)] if len(rows) else rows
    if not len(rows):
        return {}
    device = next(policy.parameters()).device
    obs = {n: torch.from_numpy(x.reshape(-1, *x.shape[2:])[rows]).to(device) for n, x in rollout.obs.items()}
    values = policy.value(PolicyInput(obs=obs, start=None, context={})).cpu().numpy().ravel()
    return {"value_error": float((np.abs(values - rollout.value.ravel()[rows]) > 10.0 * scale).mean())}
