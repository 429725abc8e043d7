"""Which policies the kernel stands in for, and why not the others."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from surefoot import native
from surefoot.data.spaces import Box, Discrete, Hybrid, MultiDiscrete
from surefoot.errors import ConfigError
from surefoot.learn.choose_path import why_not
from surefoot.learn.config import PPOConfig
from surefoot.learn.learner import Learner
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig

needs_kernel = pytest.mark.skipif(native.kernel is None, reason=native.why_not)
OBS = {"obs": Box((3,))}
REACH = Box((2,), -1.0, 1.0)


class Own(ActorCritic):
    """A policy of the user's, which may do anything."""


class Torso(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 4)

    def forward(self, obs: dict[str, torch.Tensor]) -> torch.Tensor:
        return self.layer(obs["obs"])


def frozen() -> ActorCritic:
    policy = ActorCritic(OBS, Discrete(2))
    policy.network.actor[0].weight.requires_grad_(False)
    return policy


def changed() -> ActorCritic:
    policy = ActorCritic(OBS, Discrete(2))
    policy.network.actor[1] = nn.Softsign()
    return policy


@needs_kernel
@pytest.mark.parametrize(
    "policy",
    [
        ActorCritic(OBS, Discrete(2)),
        ActorCritic(OBS, MultiDiscrete((2, 3)), NetConfig(hidden=())),
        ActorCritic(OBS, REACH, NetConfig(hidden=(8, 8, 8, 8), activation="elu", normalize_obs=True)),
        ActorCritic(OBS, REACH, NetConfig(squash=True, shared=True, activation="silu")),
        ActorCritic(OBS, Discrete(2), NetConfig(critic_hidden=(7,), activation="leaky_relu")),
        ActorCritic(OBS, REACH, NetConfig(beta=True, activation="gelu")),
        ActorCritic(OBS, Hybrid((2, 3), REACH), NetConfig(gsde=True)),
        ActorCritic({**OBS, "state": Box((2, 2))}, Discrete(2), NetConfig(critic_only=("state",), normalize_obs=True)),
    ],
    ids=["discrete", "linear", "deep", "shared", "lopsided", "beta", "hybrid", "critic_only"],
)
def test_the_kernel_supports_the_standard_policy(policy):
    assert why_not(policy) is None


@needs_kernel
@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (Own(OBS, Discrete(2)), "custom network"),
        (ActorCritic(OBS, Discrete(2), torso=Torso()), "custom network"),
        (ActorCritic(OBS, Discrete(2), NetConfig(hidden=(4,) * 9)), "more than 8 hidden layers"),
        (ActorCritic(OBS, MultiDiscrete((2,) * 65)), "more than 64 choices"),
        (ActorCritic(OBS, Discrete(2)).double(), "not float32"),
        (frozen(), "frozen"),
        (changed(), "layers of the policy were replaced"),
    ],
    ids=["subclass", "torso", "deep", "choices", "double", "frozen", "changed"],
)
def test_a_policy_that_the_kernel_does_not_support_takes_the_torch_path_with_the_reason(policy, reason):
    assert reason in str(why_not(policy))
    learner = Learner(policy, PPOConfig())
    assert learner.native is None
    assert reason in learner.path_reason
    with pytest.raises(ConfigError, match=f"path is 'native' but .*{reason}"):
        Learner(policy, PPOConfig(path="native"))


def test_without_a_kernel_torch_learns_and_says_so(monkeypatch):
    monkeypatch.setattr(native, "kernel", None)
    monkeypatch.setattr(native, "why_not", "the kernel is not there (no compiler)")
    learner = Learner(ActorCritic(OBS, Discrete(2)), PPOConfig())
    assert (learner.native, learner.path_reason) == (None, "the kernel is not there (no compiler)")
    with pytest.raises(ConfigError, match="no compiler"):
        Learner(ActorCritic(OBS, Discrete(2)), PPOConfig(path="native"))


def test_path_torch_is_torch():
    learner = Learner(ActorCritic(OBS, Discrete(2)), PPOConfig(path="torch"))
    assert (learner.native, learner.path_reason) == (None, "path is set to torch")
