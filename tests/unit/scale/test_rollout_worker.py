"""A rollout worker: pieces, their serials, and a state to continue from."""

from __future__ import annotations

import numpy as np

from surefoot.learn.config import PPOConfig
from surefoot.nets.config import NetConfig
from surefoot.scale.backend import WORLDS
from surefoot.scale.rollout_worker import RolloutWorker
from surefoot.train.config import CollectConfig
from surefoot.train.spec import RunSpec

SPEC = RunSpec(
    env="CartPole-v1",
    preset="sb3",
    ppo=PPOConfig(rollout_steps=8, envs=2, device="cpu"),
    net=NetConfig(hidden=(4,)),
    collect=CollectConfig(),
    total_steps=64,
    eval_every=0,
    checkpoint_every=1000,
).to_json()


def worker(generation: int = 0) -> RolloutWorker:
    return RolloutWorker(SPEC, 1, 2, generation, WORLDS)


def test_pieces_are_numbered_and_have_the_steps_of_all_streams():
    one = worker()
    pieces = [one.collect(version) for version in (3, 4)]
    assert [(piece.serial, piece.version, piece.steps) for piece in pieces] == [("1.0.0", 3, 16), ("1.0.1", 4, 16)]
    assert [piece.began_anew for piece in pieces] == [False, False]


def test_a_worker_of_a_later_generation_begins_anew_with_other_episodes():
    first, later = worker().collect(0), worker(generation=1).collect(0)
    assert later.began_anew
    assert not np.array_equal(first.rollout.obs["obs"], later.rollout.obs["obs"])


def test_another_worker_continues_from_its_state_to_the_last_digit():
    one, other = worker(), worker()
    one.collect(0)
    other.set_state(one.state())
    a, b = one.collect(1), other.collect(1)
    assert a.serial == b.serial
    assert np.array_equal(a.rollout.obs["obs"], b.rollout.obs["obs"])
    assert np.array_equal(a.rollout.log_prob, b.rollout.log_prob)
