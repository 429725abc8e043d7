"""What the doctor is told of weights, actions, observations and ends."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from surefoot.data.rollout import Rollout
from surefoot.data.spaces import Box, Discrete
from surefoot.envs.make import make_world
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.train.diagnose.diagnostics import EVERY, Diagnostics, dormant_share
from surefoot.train.spec import make_spec
from surefoot.train.training import Training


def policy() -> ActorCritic:
    return ActorCritic({"obs": Box((3,))}, Discrete(2), seed=0)


def rollout(**changes: np.ndarray) -> Rollout:
    shape = (4, 2)
    parts = {
        "action": np.array([[0, 0], [0, 0], [0, 1], [1, 1]]),
        "log_prob": np.zeros(shape, np.float32),
        "value": np.ones(shape, np.float32),
        "next_value": np.ones(shape, np.float32),
        "reward": np.ones(shape, np.float32),
        "terminated": np.zeros(shape, bool),
        "truncated": np.zeros(shape, bool),
        "start": np.zeros(shape, bool),
        "valid": np.ones(shape, bool),
        "policy_version": np.zeros(shape, np.int64),
    }
    obs = np.zeros((*shape, 3), np.float32)
    obs[..., 1] = 100.0
    return Rollout(obs={"obs": obs}, **(parts | changes), stats={})


def test_what_was_seen_and_done_is_told():
    told = Diagnostics(policy(), Discrete(2)).measure(rollout())
    assert told["obs_mean_max"] == 100.0
    assert told["obs_std_max"] == 0.0
    assert told["top_action_share"] == 5 / 8
    assert told["entropy_max"] == pytest.approx(0.693147, abs=1e-6)


def test_nothing_ahead_of_a_step_that_goes_on_is_told_and_an_end_is_none():
    diagnostics = Diagnostics(policy(), Discrete(2))
    next_value = np.ones((4, 2), np.float32)
    next_value[-1] = 0.0
    assert diagnostics.measure(rollout(next_value=next_value))["bootstrap_zero_share"] == 1.0
    terminated = np.zeros((4, 2), bool)
    terminated[-1] = True
    assert diagnostics.measure(rollout(next_value=next_value, terminated=terminated))["bootstrap_zero_share"] == 0.0


def test_the_step_of_the_weights_and_what_stood_still():
    mine = policy()
    diagnostics = Diagnostics(mine, Discrete(2))
    diagnostics.measure(rollout())
    moved = next(p for p in mine.parameters() if p.dim() == 2)
    norm_before = float(moved.detach().norm())
    with torch.no_grad():
        moved.mul_(1.5)
    told = diagnostics.weight_changes()
    whole = torch.cat([p.detach().flatten() for p in mine.parameters()])
    assert told["weight_step"] == pytest.approx(0.5 * norm_before / float(whole.norm()), rel=1e-5)
    assert told["frozen_share"] == pytest.approx(1 - moved.numel() / whole.numel())


def test_weights_that_change_between_two_updates_jump():
    mine = policy()
    diagnostics = Diagnostics(mine, Discrete(2))
    for _ in range(2):
        diagnostics.measure(rollout())
        diagnostics.weight_changes()
    assert diagnostics.measure(rollout())["weight_jump"] == 0.0
    diagnostics.weight_changes()
    with torch.no_grad():
        next(mine.parameters()).add_(1.0)
    assert diagnostics.measure(rollout())["weight_jump"] > 0.0
    diagnostics.weight_changes()
    diagnostics.forget()
    assert "weight_jump" not in diagnostics.measure(rollout())


def test_actions_at_their_bounds_are_counted():
    box = Box((1,), -1.0, 1.0)
    mine = ActorCritic({"obs": Box((3,))}, box, seed=0)
    action = np.array([[0.0, 1.5], [-1.0, 0.2], [0.1, 0.1], [3.0, 0.0]], np.float32)[..., None]
    assert Diagnostics(mine, box).measure(rollout(action=action))["action_at_bound_share"] == 3 / 8


def test_a_training_tells_them_now_and_then_and_learns_the_same():
    world = make_world("CartPole-v1", 1)
    spec = make_spec("CartPole-v1", world.action, total_steps=256 * (EVERY + 2), eval_every=0)
    training = Training(spec)
    told = [report.stats for report in training]
    assert [i for i, stats in enumerate(told) if "frozen_share" in stats] == [0, 1, 2, 16, 17, EVERY, EVERY + 1]
    assert [stats["weight_jump"] for stats in told if "weight_jump" in stats] == [0.0] * 4
    assert all(stats["frozen_share"] == 0.0 for stats in told if "frozen_share" in stats)
    silent = Training(spec)
    silent.diagnostics.due = lambda updates: False
    for _ in silent:
        pass
    for mine, other in zip(training.policy.parameters(), silent.policy.parameters(), strict=True):
        assert torch.equal(mine, other)


def relu_policy(**net):
    return ActorCritic({"obs": Box((3,))}, Discrete(2), NetConfig(hidden=(8, 8), activation="relu", **net), seed=0)


def noise():
    return {"obs": torch.randn(64, 3, generator=torch.Generator().manual_seed(1))}


def test_units_that_answer_are_not_dormant():
    share = dormant_share(relu_policy(), noise())
    assert share is not None
    assert share < 0.2


def test_units_pushed_below_zero_are():
    policy = relu_policy()
    with torch.no_grad():
        policy.network.actor[2].bias[:4] = -100.0
    share, before = dormant_share(policy, noise()), dormant_share(relu_policy(), noise())
    assert share is not None
    assert before is not None
    assert share - before >= 3 / 32


def test_looking_changes_nothing():
    policy = relu_policy()
    before = torch.random.get_rng_state()
    dormant_share(policy, noise())
    assert torch.equal(before, torch.random.get_rng_state())
    assert not any("forward" in vars(module) for module in policy.modules())


def test_relu_policy_with_memory_is_left_alone():
    policy = ActorCritic({"obs": Box((3,))}, Discrete(2), NetConfig(memory="gru", memory_size=8), seed=0)
    assert dormant_share(policy, noise()) is None


def test_relu_policy_of_somebodys_own_is_not_asked_behind_their_back():
    class Counting(ActorCritic):
        asked = 0

        def act(self, *args, **kwargs):
            self.asked += 1
            return super().act(*args, **kwargs)

    policy = Counting({"obs": Box((3,))}, Discrete(2), seed=0)
    assert dormant_share(policy, noise()) is not None
    assert policy.asked == 0
    own = ActorCritic({"obs": Box((3,))}, Discrete(2), torso=Rows(), seed=0)
    assert dormant_share(own, noise()) is None


class Rows(torch.nn.Module):
    def forward(self, obs):
        return obs["obs"]
