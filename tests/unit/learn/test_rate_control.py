"""A learning rate that follows the KL, against the rule by hand; on both paths, through a state and back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from surefoot import native
from surefoot.data.rollout import Rollout
from surefoot.data.spaces import Box, Discrete
from surefoot.learn.config import PPOConfig
from surefoot.learn.learner import Learner
from surefoot.learn.rate_control import Knobs, Pace
from surefoot.learn.report_builder import COLUMNS, Table
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.nets.policy import PolicyInput

PATHS = ["torch", *(["native"] if native.kernel is not None else [])]


def steps(*kl: float) -> Table:
    rows = np.zeros((len(kl), len(COLUMNS)))
    rows[:, COLUMNS.index("approx_kl")] = kl
    return Table(np.zeros(len(kl), np.int64), rows)


def answered(table: Table, *, stopped_early: bool = False, **config) -> float:
    """The learning rate after one update that began at 1e-3 and came to `table`."""
    pace = Pace(PPOConfig(**{"lr": 1e-3, "adaptive_kl": 0.01, **config}))
    before = pace.knobs(progress=0.0, updates=0)
    pace.follow(table, before, stopped_early=stopped_early)
    return pace.knobs(progress=0.0, updates=1).lr


@pytest.mark.parametrize(
    ("kl", "lr"),
    [
        ((0.001, 0.003), 1.5e-3),
        ((0.0049,), 1.5e-3),
        ((0.005,), 1e-3),
        ((0.0, 0.03), 1e-3),  # the mean counts
        ((0.02,), 1e-3),
        ((0.021,), 1e-3 / 1.5),
    ],
)
def test_the_rate_grows_below_half_the_wanted_kl_and_shrinks_above_twice_it(kl: tuple[float, ...], lr: float):
    assert answered(steps(*kl)) == pytest.approx(lr)


def test_an_update_that_the_target_kl_ended_went_too_far_whatever_its_mean():
    assert answered(steps(0.0, 0.001), stopped_early=True) == pytest.approx(1e-3 / 1.5)


def test_an_update_without_steps_says_nothing_about_the_rate():
    assert answered(steps(), stopped_early=True) == 1e-3


def test_without_the_knob_the_rate_is_the_schedules():
    assert answered(steps(5.0), adaptive_kl=None) == 1e-3
    assert answered(steps(5.0), adaptive_kl=None, lr=5.0) == 5.0


@pytest.mark.parametrize(("kl", "bound"), [(1.0, 1e-5), (0.0, 1e-2)])
def test_the_rate_stays_within_its_bounds_and_comes_back_from_them_at_once(kl: float, bound: float):
    pace = Pace(PPOConfig(lr=1e-3, adaptive_kl=0.01))
    for update in range(30):
        pace.follow(steps(kl), pace.knobs(progress=0.0, updates=update), stopped_early=False)
    lr = pace.knobs(progress=0.0, updates=30).lr
    assert lr == pytest.approx(bound)
    pace.follow(steps(1.0 - kl), Knobs(lr, 0.2, 0.0, 1.0), stopped_early=False)
    assert pace.knobs(progress=0.0, updates=31).lr == pytest.approx(bound * 1.5 if kl else bound / 1.5)


def test_a_rate_that_begins_outside_the_bounds_is_held_at_them():
    assert Pace(PPOConfig(lr=0.5, adaptive_kl=0.01)).knobs(progress=0.0, updates=0).lr == 1e-2
    assert Pace(PPOConfig(lr=1e-7, adaptive_kl=0.01)).knobs(progress=0.0, updates=0).lr == 1e-5


def test_a_schedule_goes_on_beneath_the_factor():
    pace = Pace(PPOConfig(lr="lin_1e-3", adaptive_kl=0.01))
    pace.follow(steps(0.0), pace.knobs(progress=0.0, updates=0), stopped_early=False)
    assert pace.knobs(progress=0.5, updates=1).lr == pytest.approx(0.75e-3)
    assert pace.knobs(progress=1.0, updates=2).lr == 0.0


def a_learner(path: str, **knobs) -> Learner:
    policy = ActorCritic({"obs": Box((3,))}, Discrete(4), NetConfig(hidden=(8,)), seed=1)
    return Learner(policy, PPOConfig(**{"path": path, "epochs": 2, "minibatch_size": 16, **knobs}), total_updates=9)


@torch.no_grad()
def walk(learner: Learner, seed: int, T: int = 8, N: int = 4) -> Rollout:
    """A rollout by the learner's own policy over random observations."""
    rng, no = np.random.default_rng(seed), np.zeros((T, N), bool)
    obs = rng.normal(size=(T, N, 3)).astype(np.float32)
    with learner.acting():
        out = learner.policy.act(
            PolicyInput(obs={"obs": torch.from_numpy(obs.reshape(-1, 3))}),
            generator=torch.Generator().manual_seed(seed),
        )
    action, log_prob, value = (x.numpy().reshape(T, N) for x in (out.action, out.log_prob, out.value))
    return Rollout(
        obs={"obs": obs},
        action=action,
        log_prob=log_prob,
        value=value,
        next_value=rng.normal(size=(T, N)).astype(np.float32),
        reward=rng.normal(size=(T, N)).astype(np.float32),
        terminated=no,
        truncated=no,
        start=no,
        valid=~no,
        policy_version=np.full((T, N), learner.policy_version),
    )


@pytest.mark.parametrize("path", PATHS)
def test_the_report_says_the_rate_that_was_used_and_the_next_update_uses_the_answer(path: str):
    learner = a_learner(path, lr=1e-4, adaptive_kl=0.5)
    rates = [learner.update(walk(learner, seed)).lr for seed in range(4)]
    assert learner.path == path
    assert rates == pytest.approx([1e-4, 1.5e-4, 2.25e-4, 3.375e-4])


@pytest.mark.parametrize("path", PATHS)
def test_a_rate_that_is_too_high_comes_down_to_where_the_kl_is_wanted(path: str):
    learner = a_learner(path, lr=1e-2, adaptive_kl=1e-4, epochs=8)
    reports = [learner.update(walk(learner, seed)) for seed in range(12)]
    assert reports[0].approx_kl > 2e-4
    assert reports[-1].approx_kl < 0.5 * reports[0].approx_kl
    assert reports[-1].lr < reports[0].lr / 3


@pytest.mark.parametrize("path", PATHS)
def test_both_kls_may_be_set_and_an_early_stop_slows_the_rate(path: str):
    learner = a_learner(path, lr=1e-2, adaptive_kl=1.0, target_kl=1e-4, epochs=8)
    report = learner.update(walk(learner, 0))
    assert report.stopped_early
    assert report.minibatches > 0
    assert learner.knobs().lr == pytest.approx(1e-2 / 1.5)


@pytest.mark.parametrize("path", PATHS)
def test_a_learner_that_follows_the_kl_goes_on_from_its_state_to_the_last_bit(path: str):
    straight = a_learner(path, lr=1e-4, adaptive_kl=0.5, normalize_value=True)
    for seed in range(2):
        straight.update(walk(straight, seed))
    state, weights = straight.state(), {k: x.clone() for k, x in straight.policy.state_dict().items()}
    other = a_learner(path, lr=1e-4, adaptive_kl=0.5, normalize_value=True)
    other.policy.load_state_dict(weights)
    other.set_state(state)
    for seed in range(2, 4):
        mine, its = straight.update(walk(straight, seed)), other.update(walk(other, seed))
        assert replace(mine, seconds={}) == replace(its, seconds={})
    for a, b in zip(straight.policy.parameters(), other.policy.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_state_from_before_there_was_such_a_rate_is_still_read():
    learner = a_learner("torch", adaptive_kl=0.5)
    learner.update(walk(learner, 0))
    state = learner.state()
    del state["learner"]["kl_scale"], state["learner"]["values"]
    learner.set_state(state)
    assert learner.pace.kl_scale == 1.0
    assert learner.values.std == 1.0
