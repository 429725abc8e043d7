from __future__ import annotations

import torch

from surefoot.data.spaces import Box, Discrete
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.train.diagnose.dormant_units import dormant_share


def a_policy(**net):
    return ActorCritic({"obs": Box((3,))}, Discrete(2), NetConfig(hidden=(8, 8), activation="relu", **net), seed=0)


def rows():
    return {"obs": torch.randn(64, 3, generator=torch.Generator().manual_seed(1))}


def test_units_that_answer_are_not_dormant():
    share = dormant_share(a_policy(), rows())
    assert share is not None
    assert share < 0.2


def test_units_pushed_below_zero_are():
    policy = a_policy()
    with torch.no_grad():
        policy.network.actor[2].bias[:4] = -100.0
    share, before = dormant_share(policy, rows()), dormant_share(a_policy(), rows())
    assert share is not None
    assert before is not None
    assert share - before >= 3 / 32


def test_looking_changes_nothing():
    policy = a_policy()
    before = torch.random.get_rng_state()
    dormant_share(policy, rows())
    assert torch.equal(before, torch.random.get_rng_state())
    assert not any("forward" in vars(module) for module in policy.modules())


def test_a_policy_with_memory_is_left_alone():
    policy = ActorCritic({"obs": Box((3,))}, Discrete(2), NetConfig(memory="gru", memory_size=8), seed=0)
    assert dormant_share(policy, rows()) is None


def test_a_policy_of_somebodys_own_is_not_asked_behind_their_back():
    class Counting(ActorCritic):
        asked = 0

        def act(self, *args, **kwargs):
            self.asked += 1
            return super().act(*args, **kwargs)

    policy = Counting({"obs": Box((3,))}, Discrete(2), seed=0)
    assert dormant_share(policy, rows()) is not None
    assert policy.asked == 0
    own = ActorCritic({"obs": Box((3,))}, Discrete(2), torso=Rows(), seed=0)
    assert dormant_share(own, rows()) is None


class Rows(torch.nn.Module):
    def forward(self, obs):
        return obs["obs"]
