"""Tests of `surefoot.decide.policy.rowwise`."""

from __future__ import annotations

import pytest
import torch

from surefoot.decide.policy.rowwise import CandidatePolicy
from surefoot.errors import AllActionsMasked, ShapeError
from surefoot.nets.policy import PolicyInput

OBS = {
    "x": torch.tensor([[1.0, 2.0]]),
    "base": torch.tensor([[0.0, 1.0, -1.0]]),
    "option": torch.tensor([[4, 0, 2]]),
    "guess": torch.tensor([0.5]),
}


def act(policy: CandidatePolicy, mask: list[bool]) -> int:
    inputs = PolicyInput(obs=OBS, action_mask=torch.tensor([mask]))
    output = policy.act(inputs, generator=torch.Generator().manual_seed(0), deterministic=True)
    return int(output.action)


def test_an_untrained_policy_is_its_base_and_its_value_the_guess():
    policy = CandidatePolicy(dim=2, options=5)
    assert torch.equal(policy.logits(OBS), OBS["base"])
    assert torch.equal(policy.values(OBS), OBS["guess"])


def test_weights_belong_to_options_not_to_places():
    policy = CandidatePolicy(dim=2, options=5)
    with torch.no_grad():
        policy.weight[2] = torch.tensor([3.0, -1.0])
    # Option 2 is the third candidate: 3·1 - 1·2 = 1 is added to its base of -1.
    assert torch.equal(policy.logits(OBS), torch.tensor([[0.0, 1.0, 0.0]]))


def test_a_masked_candidate_is_not_chosen_and_one_must_be_allowed():
    policy = CandidatePolicy(dim=2, options=5)
    assert act(policy, [True, True, True]) == 1
    assert act(policy, [True, False, True]) == 0
    with pytest.raises(AllActionsMasked):
        act(policy, [False, False, False])


def test_an_option_without_weights_is_refused():
    with pytest.raises(ShapeError, match="option 4 is beyond the 3"):
        CandidatePolicy(dim=2, options=3).logits(OBS)
