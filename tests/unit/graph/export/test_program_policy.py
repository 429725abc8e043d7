"""The policy of standalone programs has the numbers of the library's."""

from types import SimpleNamespace

import pytest
import torch

from surefoot.data.spaces import Box, Discrete
from surefoot.graph.export.program_policy import RecurrentNet, row_policy
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.nets.heads import DiscreteHead
from surefoot.nets.policy import PolicyInput

OBS = {"obs": Box((4,))}


def net(**changed: object) -> SimpleNamespace:
    values = {"hidden": (8,), "activation": "tanh", "shared": True, "ortho_init": True, "normalize_obs": False}
    return SimpleNamespace(**{**values, "obs_clip": 10.0, "memory": "none", "memory_size": 6, **changed})


@pytest.mark.parametrize("shared", [True, False])
def test_weights_actions_and_values_are_those_of_the_library(shared: bool) -> None:
    policy = row_policy(OBS, DiscreteHead(Discrete(3)), net(shared=shared), 7)
    library = ActorCritic(OBS, Discrete(3), NetConfig(hidden=(8,), activation="tanh", shared=shared), seed=7)
    inputs = PolicyInput(obs={"obs": torch.linspace(-1, 1, 20).reshape(5, 4)})
    ours, theirs = (p.act(inputs, generator=torch.Generator().manual_seed(0)) for p in (policy, library))
    assert torch.equal(ours.action, theirs.action)
    assert torch.equal(ours.value, theirs.value)
    assert torch.equal(ours.log_prob, theirs.log_prob)


@pytest.mark.parametrize(("kind", "width"), [("gru", 6), ("lstm", 12)])
def test_a_start_resets_the_recurrent_state(kind: str, width: int) -> None:
    policy = row_policy(OBS, DiscreteHead(Discrete(3)), net(memory=kind), 7, RecurrentNet)
    context = policy.initial_context(2)
    assert context["memory"].shape == (2, width)
    obs, generator = {"obs": torch.ones(2, 4)}, torch.Generator()
    after = policy.act(PolicyInput(obs=obs, start=torch.tensor([True, True]), context=context), generator=generator)
    start = torch.tensor([True, False])
    again = policy.act(PolicyInput(obs=obs, start=start, context=after.context), generator=generator)
    assert torch.allclose(again.value[0], after.value[0])
    assert not torch.allclose(again.value[1], after.value[1])
