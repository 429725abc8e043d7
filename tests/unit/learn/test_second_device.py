"""A second device: every tensor of acting and learning is where the policy is, and nothing is carried over unasked.

Tensors of the device "meta" have a shape but no numbers: an operation on two devices raises, as it would on a GPU, and so
does whatever wants to read a number back in the middle of a loss.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from surefoot.core.advantage import gae
from surefoot.core.batch import Batch
from surefoot.core.losses import ppo_loss
from surefoot.core.moments import standardize
from surefoot.data.spaces import Box, Discrete, MultiDiscrete
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig

DEVICE = torch.device("meta")
ROWS = Box(shape=(5,), low=-1.0, high=1.0)
ACTIONS = {
    "choice": (Discrete(3), (), torch.int64),
    "choices": (MultiDiscrete((2, 3)), (2,), torch.int64),
    "force": (Box(shape=(2,), low=-1.0, high=1.0), (2,), torch.float32),
}


def a_batch(space: str, steps: int, columns: int, device: torch.device) -> Batch:
    _, shape, kind = ACTIONS[space]
    number = lambda: torch.zeros(steps, columns, device=device)  # noqa: E731
    return Batch(
        obs={"obs": torch.zeros(steps, columns, 5, device=device)},
        action=torch.zeros(steps, columns, *shape, dtype=kind, device=device),
        log_prob=number(),
        value=number(),
        advantage=number(),
        target=number(),
    )


def a_policy(space: str, **net: Any) -> ActorCritic:
    return ActorCritic({"obs": ROWS}, ACTIONS[space][0], NetConfig(hidden=(8,), **net), seed=0)


def learn(policy: ActorCritic, batch: Batch) -> None:
    advantage, _ = standardize(batch.advantage)
    losses = ppo_loss(
        policy.evaluate(batch), batch, advantage, clip=0.2, value_clip=0.2, vf_coef=0.5, ent_coef=0.01, dual_clip=3.0
    )
    losses.total.backward()


@pytest.mark.parametrize("space", ACTIONS)
@pytest.mark.parametrize("normalize", [False, True])
def test_a_loss_and_its_gradient_stay_on_the_device_of_the_policy(space: str, normalize: bool):
    policy = a_policy(space, normalize_obs=normalize).to(DEVICE)
    learn(policy, a_batch(space, 1, 12, DEVICE))
    grads = [p.grad for p in policy.parameters()]
    assert all(grad is not None and grad.device == DEVICE for grad in grads)


def test_advantages_stay_on_the_device():
    number = torch.zeros(7, 3, device=DEVICE)
    flag = torch.zeros(7, 3, dtype=torch.bool, device=DEVICE)
    assert gae(number, number, number, flag, flag, None, gamma=0.99, lam=0.95).device == DEVICE


def test_the_test_would_see_a_tensor_that_stayed_behind():
    policy = a_policy("choice").to(DEVICE)
    with pytest.raises(RuntimeError, match="device"):
        learn(policy, a_batch("choice", 1, 12, torch.device("cpu")))
