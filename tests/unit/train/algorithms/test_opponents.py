"""The pool of past versions: which of them play, and its state. Self-play itself is in test_selfplay.py."""

import numpy as np
import pytest

from surefoot.data.spaces import Box, Discrete
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.train.algorithms.opponents import LATEST, Pool, SelfPlayConfig


def a_pool(**config: object) -> Pool:
    policy = ActorCritic({"obs": Box((4,))}, Discrete(3), NetConfig(hidden=(4,)))
    return Pool(policy, 4, SelfPlayConfig(**{"every": 10, "latest": 0.0, **config}))


def test_a_past_self_is_kept_whenever_the_steps_pass_a_multiple() -> None:
    pool = a_pool()
    for steps in (9, 1, 5, 25):
        pool.passed(steps)
    assert [past.step for past in pool.past] == [0, 10, 40]


def test_uniform_odds_are_equal_and_elo_prefers_the_strong() -> None:
    pool = a_pool()
    pool.passed(10)
    assert pool.odds().tolist() == [0.5, 0.5]
    rated = a_pool(choice="elo")
    rated.passed(10)
    rated.past[1].rating = rated.rating + 400  # ten to one: expected scores 10/11 and 1/2
    assert rated.odds()[1] / rated.odds()[0] == pytest.approx(20 / 11)


def test_a_restored_pool_meets_the_same_opponents() -> None:
    first, second = a_pool(latest=0.5), a_pool(latest=0.5)
    first.passed(30)
    state = first.state()
    state["noise"]["torch"] = state["noise"]["torch"].numpy()  # as a checkpoint gives it back
    second.set_state(state)
    for pool in (first, second):
        pool.meet(np.arange(4))
    assert first.state()["who"].tolist() == second.state()["who"].tolist()
    assert set(first.state()["who"].tolist()) <= {LATEST, 0, 30}
