"""Policies from what a checkpoint says of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from surefoot.data.spaces import Box, ObservationSpace, space_from_json
from surefoot.errors import CheckpointIncompatible
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.nets.policy import Policy


def policy_from_description(description: dict[str, Any]) -> ActorCritic:
    """The architecture that `ActorCritic.describe` described, with fresh weights."""
    if description.get("kind") != "actor_critic":
        raise CheckpointIncompatible(f"a policy of kind {description.get('kind')!r} cannot be built by itself")
    if description["own_module"]:
        raise CheckpointIncompatible("this policy has a network of your own inside: build it and pass it as policy=")
    observation: ObservationSpace = {}
    for name, spec in description["observation"].items():
        box = space_from_json(spec)
        assert isinstance(box, Box)
        observation[name] = box
    return ActorCritic(observation, space_from_json(description["action"]), NetConfig.from_json(description["config"]))


def load_weights(policy: Policy, weights: dict[str, Any]) -> None:
    """Put saved weights into a policy of the same architecture, or say where they differ."""
    own = policy.state_dict()
    given = {name: torch.as_tensor(np.array(x) if isinstance(x, np.ndarray) else x) for name, x in weights.items()}
    different = sorted(set(own) ^ set(given)) or [n for n in own if own[n].shape != given[n].shape]
    if different:
        name = different[0]
        here, there = (list(w[name].shape) if name in w else "nothing" for w in (own, given))
        raise CheckpointIncompatible(
            f"these weights belong to another policy: {name} is {there} in the checkpoint and {here} here; "
            "use the same env, net settings and surefoot version, or train anew"
        )
    policy.load_state_dict(given)
