import pytest
import torch
from gymnasium import spaces

from surefoot.compat.sb3.policies.actor_critic import ActorCriticPolicy, MultiInputActorCriticPolicy

BOX = spaces.Box(-1, 1, (3,))


def test_every_form_of_net_arch_gives_the_same_widths():
    forms = [{"pi": [8, 4], "vf": [8, 5]}, [{"pi": [8, 4], "vf": [8, 5]}], [8, {"pi": [4], "vf": [5]}]]
    for form in forms[1:]:
        with pytest.warns(UserWarning, match="old form"):
            policy = ActorCriticPolicy(BOX, BOX, lambda _: 1e-3, net_arch=form)
        plain = ActorCriticPolicy(BOX, BOX, lambda _: 1e-3, net_arch=forms[0])
        assert [p.shape for p in policy.parameters()] == [p.shape for p in plain.parameters()]


def test_the_names_of_the_weights_are_those_of_stable_baselines3():
    names = set(ActorCriticPolicy(BOX, BOX, lambda _: 1e-3).state_dict())
    layers = {
        f"mlp_extractor.{net}.{i}.{x}"
        for net in ("policy_net", "value_net")
        for i in (0, 2)
        for x in ("weight", "bias")
    }
    assert names == layers | {"log_std", *(f"{n}.{x}" for n in ("action_net", "value_net") for x in ("weight", "bias"))}


def test_evaluating_actions_agrees_with_acting():
    space = spaces.Dict({"a": BOX, "b": spaces.Discrete(3)})
    policy = MultiInputActorCriticPolicy(
        space, spaces.MultiDiscrete([2, 3]), lambda _: 1e-3, share_features_extractor=False
    )
    obs = {"a": torch.randn(5, 3), "b": torch.tensor([0, 1, 2, 1, 0])}
    actions, values, log_prob = policy(obs)
    again, same, _ = policy.evaluate_actions(obs, actions)
    assert torch.allclose(values, again)
    assert torch.allclose(log_prob, same)
