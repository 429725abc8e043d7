"""Worlds with a known answer are learned to that answer, by the same parts that train everything else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from surefoot.envs.builtin.toys import Corridor, Endless, Target, TimeLimit
from surefoot.learn.config import PPOConfig
from surefoot.nets.config import NetConfig
from surefoot.nets.policy import PolicyInput
from surefoot.train.config import CollectConfig
from surefoot.train.evaluate import play
from surefoot.train.spec import RunSpec
from surefoot.train.training import Training

GAMMA = 0.9
COMMON = {
    "rollout_steps": 16,
    "envs": 16,
    "minibatch_size": 64,
    "epochs": 4,
    "gamma": GAMMA,
    "lr": "lin_1e-2",
    "device": "cpu",
}


def trained(env: str, updates: int, *, net: dict[str, Any] | None = None, seed: int = 0, **ppo: Any) -> Training:
    """A run to its end; every rollout must have been fresh."""
    config = PPOConfig(**{**COMMON, "seed": seed, **ppo})
    spec = RunSpec(
        env=env,
        preset="sb3",
        total_steps=updates * config.batch_size,
        ppo=config,
        net=NetConfig(**{"hidden": (32,), **(net or {})}),
        collect=CollectConfig(),
        eval_every=0,
        checkpoint_every=10**9,
    )
    training = Training(spec)
    reports = list(training)
    assert len(reports) == updates
    assert max(r.first_ratio_error for r in reports) <= 1e-5
    assert sum(r.nonfinite_steps for r in reports) == 0
    return training


@torch.no_grad()
def values(training: Training, obs: np.ndarray) -> np.ndarray:
    return training.policy.value(PolicyInput(obs={"obs": torch.from_numpy(obs.astype(np.float32))})).numpy()


def returns(training: Training, episodes: int = 200) -> np.ndarray:
    return np.array(play(training.policy, training.world, episodes, seed=12345).returns)


def test_a_reward_of_one_for_ever_is_worth_one_over_one_minus_gamma():
    training = trained("surefoot/Endless-v0", 60)
    assert values(training, np.ones((1, 1)))[0] == pytest.approx(Endless().value(GAMMA), rel=0.02)


TIMED = {"rollout_steps": 20, "minibatch_size": 160, "epochs": 8, "gamma": 0.8, "lr": "lin_2e-2", "max_grad_norm": 5.0}


def test_a_time_limit_is_not_the_end_of_the_world():
    training = trained("surefoot/TimeLimit-v0", 60, net={"hidden": (32, 32)}, **TIMED)
    expected = [TimeLimit().value(0.8, t) for t in range(10)]
    assert values(training, np.arange(10)[:, None] / 10) == pytest.approx(expected, rel=0.02)


def test_a_deadline_is():
    training = trained("surefoot/Deadline-v0", 60, net={"hidden": (32, 32)}, **TIMED)
    expected = [TimeLimit(terminated=True).value(0.8, t) for t in range(10)]
    assert values(training, np.arange(10)[:, None] / 10) == pytest.approx(expected, rel=0.02, abs=0.05)


@pytest.mark.parametrize("env", ["surefoot/Bandit-v0", "surefoot/NoisyBandit-v0"])
def test_the_best_arm_is_found(env):
    training = trained(env, 40)
    seen = PolicyInput(obs={"obs": torch.ones(1, 1)})
    probs = training.policy.act(seen, generator=torch.Generator()).action_params["probs"][0]
    assert probs.argmax().item() == 2
    assert probs[2].item() > 0.95
    assert values(training, np.ones((1, 1)))[0] == pytest.approx(1.0, abs=0.1)


def test_each_context_gets_its_own_answer():
    assert returns(trained("surefoot/ContextBandit-v0", 40)).min() == 1.0


def test_the_corridor_is_walked_straight_and_valued_so():
    training = trained("surefoot/Corridor-v0", 60)
    played = play(training.policy, training.world, 32, seed=1)
    assert set(played.lengths) == {8}
    expected = [Corridor().value(GAMMA, c) for c in range(8)]
    assert values(training, np.eye(9)[:8]) == pytest.approx(expected, abs=0.1)


@pytest.mark.parametrize(
    "net", [{}, {"squash": True}, {"gsde": True, "gsde_every": 1}], ids=["gaussian", "tanh", "gsde"]
)
def test_the_target_is_hit_by_every_continuous_head(net):
    training = trained("surefoot/Target-v0", 80, net={"log_std_init": -1.0, **net})
    # Doing nothing at all misses by E|x/2|² = 2 · 1/12.
    assert returns(training).mean() > -0.02
    point = np.array([[0.6, -0.8]], np.float32)
    seen = PolicyInput(obs={"obs": torch.from_numpy(point)}, context=training.policy.initial_context(1))
    out = training.policy.act(seen, generator=torch.Generator(), deterministic=True)
    sent = training.policy.env_action(out.action.detach().numpy())
    assert sent == pytest.approx(Target().target(point), abs=0.2)


def test_what_is_allowed_and_pays_is_chosen():
    # The world raises if a forbidden action is ever taken.
    assert returns(trained("surefoot/Masked-v0", 30)).min() == 1.0


def test_both_knobs_are_turned_right():
    assert returns(trained("surefoot/TwoKnobs-v0", 40)).min() == 1.0
