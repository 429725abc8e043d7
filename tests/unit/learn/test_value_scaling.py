"""A critic that learns standardised targets while everybody else reads values in units of the return."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from torch import nn

from surefoot import native
from surefoot.data.rollout import Rollout
from surefoot.data.spaces import Box, Discrete
from surefoot.errors import ConfigError, Diverged
from surefoot.learn.config import PPOConfig
from surefoot.learn.learner import Learner
from surefoot.learn.value_scaling import MEMORY, ValueScale
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.nets.policy import PolicyInput

PATHS = ["torch", *(["native"] if native.kernel is not None else [])]
OBS = {"obs": Box((3,))}


def a_policy(*, blank: bool = False, **net) -> ActorCritic:
    policy = ActorCritic(OBS, Discrete(4), NetConfig(hidden=(8,), **net), seed=1)
    if blank:  # a critic that says 0 everywhere has no scale of its own yet
        with torch.no_grad():
            policy.network.value_out.weight.zero_()
    return policy


def a_learner(path: str, policy: ActorCritic | None = None, **knobs) -> Learner:
    config = {"path": path, "epochs": 4, "minibatch_size": 16, "lr": 3e-3, "normalize_value": True, **knobs}
    return Learner(policy or a_policy(), PPOConfig(**config))


@torch.no_grad()
def walk(
    policy: ActorCritic, seed: int = 0, *, scale: float = 1.0, shift: float = 0.0, T: int = 16, N: int = 4
) -> Rollout:
    """Rewards follow the first observation, times `scale` and plus `shift`; every third step ends an episode."""
    rng, no = np.random.default_rng(seed), np.zeros((T, N), bool)
    obs = rng.normal(size=(T + 1, N, 3)).astype(np.float32)
    seen = PolicyInput(obs={"obs": torch.from_numpy(obs.reshape(-1, 3))})
    out = policy.act(seen, generator=torch.Generator().manual_seed(seed))
    value = out.value.numpy().reshape(T + 1, N)
    terminated = no.copy()
    terminated[::3] = True
    return Rollout(
        obs={"obs": obs[:-1]},
        action=out.action.numpy().reshape(T + 1, N)[:-1],
        log_prob=out.log_prob.numpy().reshape(T + 1, N)[:-1],
        value=value[:-1],
        next_value=value[1:],
        reward=(scale * obs[:-1, :, 0] + shift).astype(np.float32),
        terminated=terminated,
        truncated=no,
        start=no,
        valid=~no,
        policy_version=np.zeros((T, N), np.int64),
    )


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("shared", [False, True])
def test_rewards_times_a_thousand_teach_the_same_policy_and_a_thousand_times_the_values(path: str, shared: bool):
    small, large = (a_learner(path, a_policy(blank=True, shared=shared)) for _ in range(2))
    for seed in range(5):
        one = small.update(walk(small.policy, seed))
        thousand = large.update(walk(large.policy, seed, scale=1000.0))
        assert one.policy_loss == pytest.approx(thousand.policy_loss, abs=1e-4)
        assert one.value_loss == pytest.approx(thousand.value_loss, rel=1e-3)
        assert one.value_scale == pytest.approx(thousand.value_scale / 1000, rel=1e-4)
        assert one.target_std == pytest.approx(thousand.target_std / 1000, rel=1e-4)
    for (name, a), b in zip(small.policy.named_parameters(), large.policy.parameters(), strict=True):
        expected = 1000 * a if "value_out" in name else a
        torch.testing.assert_close(b, expected, rtol=1e-2, atol=2e-4 * (1000 if "value_out" in name else 1))


@pytest.mark.parametrize("path", PATHS)
def test_without_it_large_rewards_teach_the_critic_next_to_nothing(path: str):
    errors = {}
    for on in (False, True):
        learner = a_learner(path, normalize_value=on)
        for seed in range(30):
            report = learner.update(walk(learner.policy, seed, scale=1000.0))
        errors[on] = report.explained_variance
    assert errors[False] < 0.05
    assert errors[True] > 0.3


@pytest.mark.parametrize("path", PATHS)
def test_an_update_that_moves_no_weight_leaves_every_value_as_it_was(path: str):
    """The statistics move all the same: what the critic says is preserved."""
    policy = a_policy()
    learner, rollout = a_learner(path, policy, lr="lin_1e-30"), walk(policy, shift=500.0, scale=30.0)
    before = {name: x.clone() for name, x in policy.state_dict().items()}
    learner.update(rollout)
    assert learner.values.mean > 100
    assert learner.values.std > 10
    for name, x in policy.state_dict().items():
        torch.testing.assert_close(x, before[name], rtol=1e-6, atol=1e-4)


@pytest.mark.parametrize("path", PATHS)
def test_values_in_the_rollout_and_in_the_report_are_in_units_of_the_return(path: str):
    learner = a_learner(path)
    for seed in range(60):
        report = learner.update(walk(learner.policy, seed, shift=100.0))
    assert report.value_mean == pytest.approx(report.target_mean, rel=0.1)
    assert 90 < report.target_mean < 10_000
    assert report.value_scale == learner.values.std


def test_the_first_rollout_sets_the_scale_by_its_own_targets():
    policy = a_policy()
    learner, rollout = a_learner("torch", policy), walk(policy, scale=7.0)
    target = learner.prepare(rollout).target.double()
    learner.update(rollout)
    assert learner.values.mean == pytest.approx(float(target.mean()), rel=1e-6)
    assert learner.values.std == pytest.approx(float(target.std(correction=0)), rel=1e-6)


def test_two_rollouts_of_one_size_are_merged_like_one_of_both():
    scale, rng = ValueScale(a_policy(), normalize=True), np.random.default_rng(0)
    a, b = rng.normal(3, 2, 500), rng.normal(-1, 5, 500)
    scale.count_in(a)
    scale.count_in(torch.from_numpy(b))
    both = np.concatenate([a, b])
    assert scale.mean == pytest.approx(both.mean())
    assert scale.std == pytest.approx(both.std())


def test_the_past_fades_so_that_the_scale_follows_returns_that_grow():
    scale, rng = ValueScale(a_policy(), normalize=True), np.random.default_rng(0)
    for _ in range(1000):
        scale.count_in(rng.normal(0, 1, 100))
    for _ in range(int(5 * MEMORY)):
        scale.count_in(rng.normal(50, 1, 100))
    assert scale.mean == pytest.approx(50, abs=1)


def test_targets_that_are_all_alike_have_no_scale_and_leave_the_old_one():
    scale = ValueScale(a_policy(), normalize=True)
    scale.count_in(np.full(100, 12345.678, np.float32))
    assert scale.std == 1.0
    assert scale.mean == pytest.approx(12345.678)


@pytest.mark.parametrize("path", PATHS)
def test_steps_that_do_not_count_do_not_move_the_scale(path: str):
    policy = a_policy()
    rollout, valid = walk(policy), np.ones((16, 4), bool)
    valid[:, 1] = False
    wild = dataclasses.replace(rollout, valid=valid, reward=np.where(valid, rollout.reward, 1e6).astype(np.float32))
    tame = dataclasses.replace(rollout, valid=valid)
    one, other = a_learner(path, a_policy()), a_learner(path, a_policy())
    one.update(wild)
    other.update(tame)
    assert one.values.state() == other.values.state()


@pytest.mark.parametrize("path", PATHS)
def test_an_update_that_is_taken_back_puts_the_critic_back_too(path: str):
    policy = a_policy()
    learner, rollout = a_learner(path, policy), walk(policy, scale=50.0)
    with torch.no_grad():
        policy.network.actor[0].weight[0, 0] = torch.nan
    before = policy.network.value_out.weight.clone()
    assert learner.update(rollout).rolled_back
    torch.testing.assert_close(policy.network.value_out.weight, before, rtol=1e-6, atol=0)
    with pytest.raises(Diverged):
        learner.update(rollout)
    torch.testing.assert_close(policy.network.value_out.weight, before, rtol=1e-6, atol=0)


def test_a_clipped_value_may_move_by_so_many_deviations():
    """With rewards a thousand times as large the clip bites exactly as often."""
    for clip in (0.05, 0.5):
        small, large = (a_learner("torch", a_policy(blank=True), value_clip=clip) for _ in range(2))
        one, thousand = small.update(walk(small.policy)), large.update(walk(large.policy, scale=1000.0))
        assert one.value_loss == pytest.approx(thousand.value_loss, rel=1e-3)


def test_normalize_value_with_a_custom_network_is_refused():
    class Mine(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 5)

        def forward(self, obs):
            raw = self.layer(obs["obs"])
            return raw[:, :4], raw[:, 4]

    policy = ActorCritic(OBS, Discrete(4), NetConfig(), network=Mine())
    with pytest.raises(ConfigError, match="scales the last layer of the standard critic"):
        Learner(policy, PPOConfig(normalize_value=True))
    Learner(policy, PPOConfig())
