import numpy as np
import torch
from gymnasium import spaces

from surefoot.compat.sb3.engine.policies import EnginePolicy, standard
from surefoot.compat.sb3.policies.actor_critic import ActorCriticPolicy
from surefoot.nets.policy import PolicyInput

BOX = spaces.Box(-1, 1, (3,))


def test_the_standard_policy_shares_its_weights_and_its_values():
    policy = ActorCriticPolicy(BOX, spaces.Discrete(2), lambda _: 1e-3, net_arch={"pi": [8], "vf": [4, 4]})
    fast = standard(policy)
    assert fast is not None
    obs = torch.randn(5, 3)
    assert torch.equal(fast.value(PolicyInput(obs={"obs": obs})), policy.predict_values(obs).flatten())
    assert {id(p) for p in fast.parameters()} == {id(p) for p in policy.parameters()}


def test_a_subclass_or_gsde_is_not_standard():
    class Mine(ActorCriticPolicy):
        pass

    assert standard(Mine(BOX, spaces.Discrete(2), lambda _: 1e-3)) is None
    assert standard(ActorCriticPolicy(BOX, BOX, lambda _: 1e-3, use_sde=True)) is None


def test_actions_are_clipped_for_the_env_only():
    policy = EnginePolicy(ActorCriticPolicy(BOX, BOX, lambda _: 1e-3))
    assert policy.env_action(np.full((2, 3), 7.0, np.float32)).max() == 1.0
