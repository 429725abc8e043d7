import numpy as np
import torch
from gymnasium import spaces

from surefoot.compat.sb3.engine.policies import EnginePolicy, standard
from surefoot.compat.sb3.policies.actor_critic import ActorCriticPolicy
from surefoot.core.batch import Batch
from surefoot.nets.policy import PolicyInput

BOX = spaces.Box(-1, 1, (3,))


def test_the_standard_policy_shares_its_weights_and_its_values():
    policy = ActorCriticPolicy(BOX, spaces.Discrete(2), lambda _: 1e-3, net_arch={"pi": [8], "vf": [4, 4]})
    fast = standard(policy)
    assert fast is not None
    obs = torch.randn(5, 3)
    assert torch.equal(fast.value(PolicyInput(obs={"obs": obs})), policy.predict_values(obs).flatten())
    assert {id(p) for p in fast.parameters()} == {id(p) for p in policy.parameters()}


def test_a_subclass_or_another_kind_of_noise_is_not_standard():
    class Mine(ActorCriticPolicy):
        pass

    assert standard(Mine(BOX, spaces.Discrete(2), lambda _: 1e-3)) is None
    for kind in ({"use_expln": True}, {"full_std": False}, {"squash_output": True}):
        assert standard(ActorCriticPolicy(BOX, BOX, lambda _: 1e-3, use_sde=True, **kind)) is None


def test_gsde_shares_its_weights_and_has_the_same_log_probs():
    policy = ActorCriticPolicy(BOX, BOX, lambda _: 1e-3, use_sde=True, net_arch=[8])
    fast = standard(policy, sde_sample_freq=4)
    assert fast is not None
    assert fast.config.gsde_every == 4
    assert {id(p) for p in fast.parameters()} == {id(p) for p in policy.parameters()}
    obs, action = torch.randn(1, 5, 3), torch.randn(1, 5, 3)
    flags = torch.zeros(1, 5)
    batch = Batch(
        obs={"obs": obs},
        action=action,
        log_prob=flags,
        value=flags,
        advantage=flags,
        target=flags,
        valid=flags == 0,
    )
    values, log_prob, entropy = policy.evaluate_actions(obs[0], action[0])
    evaluation = fast.evaluate(batch)
    assert torch.allclose(evaluation.log_prob[0], log_prob, atol=1e-5)
    assert torch.allclose(evaluation.entropy[0], entropy, atol=1e-5)
    assert torch.allclose(evaluation.value[0], values.flatten(), atol=1e-6)


def test_actions_are_clipped_for_the_env_only():
    policy = EnginePolicy(ActorCriticPolicy(BOX, BOX, lambda _: 1e-3))
    assert policy.env_action(np.full((2, 3), 7.0, np.float32)).max() == 1.0
