"""Weights fit only a policy of the same architecture; the old name of `PolicyInput` still works."""

import pytest
import torch

from surefoot.data.spaces import Box, Discrete
from surefoot.errors import CheckpointIncompatible
from surefoot.nets import policy as policies
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.nets.policy import PolicyInput, load_weights


def a_policy(seed: int, width: int = 8) -> ActorCritic:
    return ActorCritic({"obs": Box((3,))}, Discrete(2), NetConfig(hidden=(width,)), seed=seed)


def test_loaded_weights_give_the_same_values():
    one, other = a_policy(0), a_policy(1)
    inputs = PolicyInput(obs={"obs": torch.ones(4, 3)})
    assert not torch.equal(one.value(inputs), other.value(inputs))
    load_weights(other, {name: x.numpy() for name, x in one.state_dict().items()})
    assert torch.equal(one.value(inputs), other.value(inputs))


def test_weights_of_another_width_are_refused_with_both_shapes():
    with pytest.raises(CheckpointIncompatible, match=r"\[16, 3\] in the checkpoint and \[8, 3\] in this policy"):
        load_weights(a_policy(0), a_policy(0, width=16).state_dict())


def test_a_missing_weight_is_named():
    weights = a_policy(0).state_dict()
    weights.pop("network.value_out.bias")
    with pytest.raises(CheckpointIncompatible, match="network.value_out.bias is absent in the checkpoint"):
        load_weights(a_policy(0), weights)


def test_the_old_name_works_with_a_warning():
    with pytest.warns(DeprecationWarning, match="PolicyInput"):
        assert policies.Seen is PolicyInput
    with pytest.raises(AttributeError, match="no attribute 'Heard'"):
        policies.Heard  # noqa: B018
