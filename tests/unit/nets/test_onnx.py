"""Graphs written node by node, against the policies they were written from."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from surefoot.data.spaces import Box, Discrete, Hybrid, MultiDiscrete
from surefoot.errors import ConfigError, PolicyError
from surefoot.nets import onnx as ours
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.nets.onnx_builder import optional_module
from surefoot.nets.policy import PolicyInput

onnxruntime = pytest.importorskip("onnxruntime")

ROW = {"obs": Box((4,))}
PUSH = Box((2, 2), -1.0, (2.0, 2.0, 3.0, 0.5))


def shaken(observation, action, seed=0, **net):
    """A policy whose weights, statistics and deviations are none of the first day."""
    policy = ActorCritic(observation, action, NetConfig(**net), seed=seed)
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for weight in policy.parameters():
            weight.add_(0.3 * torch.randn_like(weight) / max(1.0, weight.shape[-1] ** 0.5))
    for torso in policy.torsos:
        torso.absorb(
            {n: (3.0 + 5.0 * rng.standard_normal((50, *b.shape))).astype(b.dtype) for n, b in observation.items()}
        )
    return policy


def session_of(policy, *, masks=False):
    model, _ = ours.policy_graph(policy, masks=masks)
    return onnxruntime.InferenceSession(model.SerializeToString())


@pytest.mark.parametrize("activation", ["tanh", "relu", "elu", "silu", "gelu", "leaky_relu"])
def test_each_activation_is_written_as_torch_has_it(activation):
    policy = shaken(ROW, Discrete(3), activation=activation)
    obs = np.random.default_rng(1).standard_normal((64, 4)).astype(np.float32) * 2
    action, probs, value = session_of(policy).run(None, {"obs": obs})
    with torch.no_grad():
        truth = policy.act(
            PolicyInput(obs={"obs": torch.from_numpy(obs)}), generator=torch.Generator(), deterministic=True
        )
    np.testing.assert_allclose(probs, truth.action_params["probs"], atol=1e-6)
    np.testing.assert_allclose(value, truth.value, atol=1e-5)
    assert (action == truth.action.numpy()).all()


def test_a_forbidden_choice_is_never_taken_and_has_no_probability():
    policy = shaken(ROW, MultiDiscrete((3, 4)))
    obs = np.random.default_rng(1).standard_normal((100, 4)).astype(np.float32)
    mask = np.tile([False, True, True, False, False, True, False], (100, 1))
    action, first, second, _ = session_of(policy, masks=True).run(None, {"obs": obs, "action_mask": mask})
    assert set(action[:, 0]) <= {1, 2}
    assert set(action[:, 1]) == {2}
    assert (first[:, 0] == 0).all()
    assert (second[:, 2] == 1).all()


def test_choices_are_called_as_the_world_calls_them():
    action, *_ = session_of(shaken(ROW, Discrete(2, start=5))).run(None, {"obs": np.zeros((3, 4), np.float32)})
    assert set(action) <= {5, 6}


@pytest.mark.parametrize("net", [{}, {"squash": True}, {"beta": True}, {"gsde": True}], ids=str)
def test_real_actions_have_the_shape_of_the_space_and_stay_within_its_bounds(net):
    obs = 30 * np.random.default_rng(1).standard_normal((200, 4)).astype(np.float32)
    policy = shaken(ROW, PUSH, **net)
    action, *_ = session_of(policy).run(None, {"obs": obs})
    with torch.no_grad():
        out = policy.act(
            PolicyInput(obs={"obs": torch.from_numpy(obs)}), generator=torch.Generator(), deterministic=True
        )
    low, high = PUSH.bounds()
    assert action.shape == (200, 2, 2)
    assert ((action >= low) & (action <= high)).all()
    np.testing.assert_allclose(action, policy.env_action(out.action.numpy()), atol=1e-5)


def test_statistics_are_inside_and_clipped():
    policy = shaken(ROW, Discrete(2), normalize_obs=True, obs_clip=2.0, hidden=())
    run = session_of(policy).run
    mean, std = (x.numpy() for x in (policy.torsos[0].normalizer.mean, policy.torsos[0].normalizer.var.sqrt()))
    far = run(["value"], {"obs": (mean + 2 * std).astype(np.float32)[None]})[0]
    farther = run(["value"], {"obs": (mean + 9 * std).astype(np.float32)[None]})[0]
    middle = run(["value"], {"obs": mean.astype(np.float32)[None]})[0]
    np.testing.assert_allclose(far, farther, atol=1e-5)
    np.testing.assert_allclose(middle, policy.network.value_out.bias.detach(), atol=1e-5)


def test_a_part_with_a_word_of_our_own_gets_another_name():
    policy = shaken({"value": Box((2,)), "map": Box((3,))}, Discrete(2))
    assert {port.name for port in session_of(policy).get_inputs()} == {"obs.value", "map"}


def test_what_only_the_critic_sees_is_no_input_and_the_value_no_output():
    policy = shaken({"obs": Box((2,)), "state": Box((3,))}, Discrete(2), critic_only=("state",))
    session = session_of(policy)
    assert [port.name for port in session.get_inputs()] == ["obs"]
    assert [port.name for port in session.get_outputs()] == ["action", "probs"]


def test_the_same_weights_make_the_same_bytes():
    first, second = (ours.policy_graph(shaken(ROW, PUSH))[0].SerializeToString(deterministic=True) for _ in range(2))
    assert first == second


def test_weights_keep_their_names():
    model, _ = ours.policy_graph(shaken(ROW, Hybrid((3,), Box((1,), -1.0, 1.0))))
    assert {"network.actor.0.weight", "network.policy_out.bias"} <= {x.name for x in model.graph.initializer}


def test_a_mask_for_real_numbers_is_refused():
    with pytest.raises(PolicyError, match="only discrete actions can be masked"):
        ours.policy_graph(shaken(ROW, PUSH), masks=True)


def test_a_missing_package_is_one_sentence_that_names_the_extra():
    with pytest.raises(ConfigError, match=r"surefoot\[onnx\]"):
        optional_module("onnx_that_is_not_there")
