"""Temperature: what it does to probabilities, where it holds, and where there is none."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from surefoot import native
from surefoot.data.spaces import Box, Discrete, MultiDiscrete
from surefoot.envs.api import View
from surefoot.envs.make import make_world
from surefoot.errors import ConfigError
from surefoot.learn.config import PPOConfig
from surefoot.learn.learner import Learner
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.nets.heads import at_temperature
from surefoot.nets.policy import PolicyInput
from surefoot.train.collect.collector import Collector
from surefoot.train.collect.kernel_act import kernel_act
from surefoot.train.collect.kernel_rollout import KernelActor
from surefoot.train.loop import live, training_loop
from surefoot.train.spec import make_spec
from surefoot.train.training import Training

OBS = {"obs": Box((2,))}


def a_policy(action=Discrete(3), **net) -> ActorCritic:
    policy = ActorCritic(OBS, action, NetConfig(hidden=(4,), **net), seed=3)
    with torch.no_grad():
        policy.network.policy_out.weight.mul_(100.0)
    return policy


def seen(mask: torch.Tensor | None = None) -> PolicyInput:
    return PolicyInput(obs={"obs": torch.tensor([[0.5, -1.0], [2.0, 0.3]])}, action_mask=mask)


def acted(policy: ActorCritic, temperature: float, **how):
    with torch.no_grad(), at_temperature(policy, temperature):
        return policy.act(how.pop("seen", seen()), generator=torch.Generator().manual_seed(0), **how)


def test_probabilities_are_those_of_the_logits_divided_by_it():
    policy = a_policy()
    logits = policy.network(seen().obs)[0].detach().numpy()
    for temperature in (0.5, 2.0, 10.0):
        weight = np.exp(logits / temperature)
        probs = acted(policy, temperature).action_params["probs"].numpy()
        np.testing.assert_allclose(probs, weight / weight.sum(axis=1, keepdims=True), rtol=1e-5)


def test_several_choices_are_all_warmed():
    policy = a_policy(MultiDiscrete((2, 3)))
    warm, cold = acted(policy, 100.0), acted(policy, 1.0)
    for k, options in enumerate((2, 3)):
        np.testing.assert_allclose(warm.action_params[f"probs_{k}"].numpy(), 1 / options, atol=0.05)
        assert cold.action_params[f"probs_{k}"].max() > 0.5


def test_a_forbidden_choice_stays_forbidden_at_any_temperature():
    mask = torch.tensor([[True, False, True], [False, True, True]])
    probs = acted(a_policy(), 1000.0, seen=seen(mask)).action_params["probs"]
    assert (probs[~mask] == 0).all()


def test_the_likeliest_action_is_the_same_at_any_temperature():
    policy = a_policy()
    first = acted(policy, 1.0, deterministic=True).action
    assert all(torch.equal(acted(policy, t, deterministic=True).action, first) for t in (0.01, 3.0, 50.0))


def test_outside_the_block_the_temperature_is_one_again_even_after_an_error():
    policy = a_policy()
    with pytest.raises(RuntimeError), at_temperature(policy, 5.0):
        assert policy.head.temperature == 5.0
        raise RuntimeError
    assert policy.head.temperature == 1.0


def test_real_valued_actions_have_no_temperature():
    policy = a_policy(Box((2,), -1.0, 1.0))
    with pytest.raises(ConfigError, match=r"temperature is set but this policy has no discrete actions.*log_std_init"):
        Learner(policy, PPOConfig(temperature=2.0))
    Learner(policy, PPOConfig(temperature=1.0))


def a_training(**settings) -> Training:
    world = make_world("CartPole-v1", 1)
    settings = {"n_envs": 4, "n_steps": 32, "batch_size": 32, "n_epochs": 2, **settings}
    spec = make_spec(
        "CartPole-v1", world.action, preset_name="sb3", settings=settings, total_steps=4 * 128, eval_every=0
    )
    return Training(spec)


def test_a_warm_run_is_learned_from_at_the_temperature_it_acted_at():
    training = a_training(temperature="lin_4_1")
    reports = []
    for report in training:
        reports.append(report)
        assert training.policy.head.temperature == 1.0
    assert [r.temperature for r in reports] == pytest.approx([4.0, 3.25, 2.5, 1.75])
    assert max(r.first_ratio_error for r in reports) < 1e-5
    assert {r.path for r in reports} == {"torch" if native.kernel is None else "native"}


def test_acting_and_learning_at_different_temperatures_would_show_in_the_first_ratio():
    training = a_training(temperature=4.0)
    with torch.no_grad():
        training.policy.network.policy_out.weight.mul_(100.0)
    rollout = training.collector.collect(0)  # not within `acting`
    assert training.learner.update(rollout).first_ratio_error > 0.1


def test_the_plain_loop_warms_the_policy_too():
    world = make_world("CartPole-v1", 2)
    policy = ActorCritic(world.observation, world.action, NetConfig(hidden=(8,)))
    learner = Learner(policy, PPOConfig(temperature=3.0, rollout_steps=16, minibatch_size=16, epochs=1))
    collector = Collector(world, policy, steps=16, gamma=0.99)
    report = next(training_loop(live(collector, learner), learner))
    assert (report.temperature, report.first_ratio_error < 1e-5) == (3.0, True)


def test_a_saved_warm_run_goes_on_to_the_last_bit():
    straight, other = a_training(temperature="lin_3_0.5"), a_training(temperature="lin_3_0.5")
    straight.update()
    other.set_state(straight.state())
    for _ in range(2):
        a, b = straight.update(), other.update()
        assert (a.temperature, a.policy_loss, a.entropy) == (b.temperature, b.policy_loss, b.entropy)


@pytest.mark.skipif(native.kernel is None, reason=native.why_not)
def test_the_kernel_acts_at_the_temperature_of_the_policy():
    policy = a_policy()
    actor, n = KernelActor(policy, 0), 4000
    view = View(obs={"obs": np.ones((n, 2), np.float32)})
    with torch.no_grad():
        logits = policy.network({"obs": torch.ones(1, 2)})[0][0].numpy()
    for temperature in (0.5, 1.0, 4.0):
        with at_temperature(policy, temperature):
            actor.require()
            action = kernel_act(actor, view, actor.rng, deterministic=False).env_action
        expected = np.exp(logits / temperature - np.logaddexp.reduce(logits / temperature))
        np.testing.assert_allclose(np.bincount(action, minlength=len(logits)) / n, expected, atol=0.03)
