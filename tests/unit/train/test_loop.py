"""The loop as iterators: nothing is collected before the last report was looked at."""

from __future__ import annotations

from itertools import islice

from surefoot.data.spaces import Box, Discrete
from surefoot.envs.builtin.toys import TOYS
from surefoot.learn.config import PPOConfig
from surefoot.learn.learner import Learner
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.train.collect.collector import Collector
from surefoot.train.loop import live, training_loop


def parts() -> tuple[Collector, Learner]:
    policy = ActorCritic({"obs": Box((4,))}, Discrete(4), NetConfig(hidden=(4,)))
    learner = Learner(policy, PPOConfig(minibatch_size=8, epochs=1))
    return Collector(TOYS["surefoot/ContextBandit-v0"](2), policy, steps=8, gamma=0.9), learner


def test_each_rollout_is_made_by_the_policy_of_that_moment():
    collector, learner = parts()
    reports = list(islice(training_loop(live(collector, learner), learner), 4))
    assert [r.update for r in reports] == [1, 2, 3, 4]
    assert [r.policy_lag for r in reports] == [0, 0, 0, 0]
    assert all(r.first_ratio_error <= 1e-5 for r in reports)


def test_nothing_is_collected_before_it_is_asked_for():
    collector, learner = parts()
    reports = training_loop(live(collector, learner), learner)
    assert collector.env_steps == 0
    next(reports)
    assert collector.env_steps == 16
    next(reports)
    assert collector.env_steps == 32


def test_any_rollouts_can_be_learned_from():
    collector, learner = parts()
    stored = [collector.collect(0) for _ in range(3)]
    assert [r.policy_lag for r in training_loop(stored, learner)] == [0, 1, 2]
