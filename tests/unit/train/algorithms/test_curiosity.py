"""The bonus: who gets it, who must not, how it is scaled, and that a run with it goes on to the last bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from surefoot.data.rollout import Rollout
from surefoot.data.spaces import Box, Discrete, MultiDiscrete
from surefoot.envs.builtin.maze import Maze
from surefoot.envs.builtin.streams import Streams
from surefoot.errors import CheckpointIncompatible, ConfigError
from surefoot.learn.checkpoint.checkpoint import load_checkpoint, save_checkpoint
from surefoot.learn.config import PPOConfig
from surefoot.learn.schedule import Linear
from surefoot.nets.config import NetConfig
from surefoot.train.algorithms.curiosity import Curiosity
from surefoot.train.config import CollectConfig, split_settings
from surefoot.train.spec import RunSpec
from surefoot.train.training import Training


def a_rollout(obs: np.ndarray, *, ended=(), ghosts=(), reward: float = 1.0, action=None) -> Rollout:
    """[T, N, …] observations; `ended` are terminated steps and `ghosts` invalid ones, as (step, stream)."""
    shape = obs.shape[:2]
    flags = {name: np.zeros(shape, bool) for name in ("terminated", "truncated", "start")}
    for at in ended:
        flags["terminated"][at] = True
    valid = np.ones(shape, bool)
    for at in ghosts:
        valid[at] = False
    numbers = {name: np.zeros(shape, np.float32) for name in ("log_prob", "value", "next_value")}
    return Rollout(
        obs={"obs": obs},
        action=np.zeros(shape, np.int64) if action is None else action,
        reward=np.where(valid, reward, 0.0).astype(np.float32),
        valid=valid,
        policy_version=np.zeros(shape, np.int64),
        **numbers,
        **flags,
    )


def curious(streams: int, *, gamma: float = 0.5, action=None, observation=None, **knobs: Any) -> Curiosity:
    config = CollectConfig(**{"curiosity": "rnd", "curiosity_hidden": (8,), **knobs})
    observation = observation or {"obs": Box((1,))}
    return Curiosity(config, observation, action or Discrete(2), streams=streams, gamma=gamma)


class ByNumber(torch.nn.Module):
    """Surprised by as much as the observation's own number."""

    def __init__(self, owner: Curiosity) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        normalizer = owner.flatten.normalizer
        assert normalizer is not None
        owner.flatten.normalizer = None
        owner.net = self  # pyright: ignore[reportAttributeAccessIssue]

    def surprise(self, rows, action, after):
        return after[:, 0]

    def loss(self, rows, action, after):
        return (self.weight * 0.0).sum()


def test_a_step_is_paid_for_what_it_led_to_and_the_last_for_what_is_seen_now():
    owner = curious(1, gamma=0.0)
    ByNumber(owner)
    paid = owner.add_bonus(a_rollout(np.array([[[1.0]], [[3.0]]], np.float32)), {"obs": np.array([[6.0]], np.float32)})
    # Bonuses 3 and 6; with γ = 0 the returns are the same two, whose deviation is 1.5.
    assert paid.reward[:, 0] == pytest.approx([1 + 3 / 1.5, 1 + 6 / 1.5])
    assert paid.stats["bonus_mean"] == pytest.approx(3.0)


def test_the_scale_is_the_deviation_of_the_discounted_sum():
    owner = curious(1, gamma=0.5, ext_coef=0.0)
    ByNumber(owner)
    paid = owner.add_bonus(
        a_rollout(np.array([[[9.0]], [[2.0]], [[4.0]]], np.float32)), {"obs": np.array([[1.0]], np.float32)}
    )
    sums = np.array([2.0, 4.0 + 1.0, 1.0 + 2.5])
    assert paid.reward[:, 0] == pytest.approx(np.array([2.0, 4.0, 1.0]) / sums.std())


def test_the_two_coefficients_weigh_reward_and_bonus():
    plain, heavy = (curious(1, gamma=0.0, **knobs) for knobs in ({}, {"ext_coef": 5.0, "curiosity_coef": 0.1}))
    found = []
    for owner in (plain, heavy):
        ByNumber(owner)
        found.append(
            owner.add_bonus(a_rollout(np.array([[[1.0]], [[3.0]]], np.float32)), {"obs": np.array([[6.0]], np.float32)})
        )
    assert found[0].reward[:, 0] == pytest.approx([3.0, 5.0])
    assert found[1].reward[:, 0] == pytest.approx([5.2, 5.4])


def test_the_coefficient_may_follow_a_schedule():
    owner = curious(1, gamma=0.0, curiosity_coef="lin_1")
    ByNumber(owner)
    rollout, after = a_rollout(np.array([[[1.0]], [[3.0]]], np.float32)), {"obs": np.array([[6.0]], np.float32)}
    assert owner.add_bonus(rollout, after, progress=1.0).reward[:, 0] == pytest.approx([1.0, 1.0])


def test_no_bonus_crosses_a_reset():
    owner = curious(2, gamma=0.0)
    ByNumber(owner)
    obs = np.array([[[1.0], [1.0]], [[7.0], [2.0]], [[3.0], [3.0]]], np.float32)
    paid = owner.add_bonus(a_rollout(obs, ended=[(0, 0), (2, 1)]), {"obs": np.array([[5.0], [100.0]], np.float32)})
    assert paid.reward[0, 0] == 1.0, "7 is the first observation of the next episode"
    assert paid.reward[2, 1] == 1.0
    assert (paid.reward[[0, 1, 1, 2], [1, 0, 1, 0]] > 1.0).all()


def test_a_ghost_row_gets_nothing_and_is_not_counted():
    obs = np.array([[[1.0]], [[50.0]], [[3.0]], [[4.0]]], np.float32)
    owner = curious(1, gamma=0.0)
    ByNumber(owner)
    paid = owner.add_bonus(a_rollout(obs, ended=[(0, 0)], ghosts=[(1, 0)]), {"obs": np.array([[6.0]], np.float32)})
    assert paid.reward[:2, 0].tolist() == [1.0, 0.0]
    # Counted are 0 (the step that ended), 4 and 6.
    assert paid.reward[2:, 0] == pytest.approx(1 + np.array([4.0, 6.0]) / np.std([0.0, 4.0, 6.0]))


def test_what_is_seen_often_pays_less_and_less():
    owner, obs = curious(4, curiosity_share=1.0, curiosity_lr=1e-2), np.random.default_rng(0).normal(size=(8, 4, 1))
    rollout, after = a_rollout(obs.astype(np.float32)), {"obs": obs[-1].astype(np.float32)}
    losses = [owner.add_bonus(rollout, after).stats["curiosity_loss"] for _ in range(60)]
    assert losses[-1] < 0.1 * losses[0]


@pytest.mark.parametrize("kind", ["rnd", "icm"])
@pytest.mark.parametrize(
    ("space", "action"),
    [
        (Discrete(3), np.ones((4, 2), np.int64)),
        (MultiDiscrete((2, 3)), np.ones((4, 2, 2), np.int64)),
        (Box((2,), -1.0, 1.0), np.ones((4, 2, 2), np.float32)),
    ],
)
def test_images_beside_numbers_and_every_kind_of_action_are_taken(kind: str, space: Any, action: np.ndarray):
    parts = {"image": Box((3, 3, 1), 0, 255, "uint8"), "speed": Box((2,))}
    owner = curious(2, curiosity=kind, observation=parts, action=space)
    rng = np.random.default_rng(0)
    image, speed = rng.integers(0, 255, (5, 2, 3, 3, 1), np.uint8), rng.normal(size=(5, 2, 2)).astype(np.float32)
    plain = a_rollout(speed[:-1], action=action)
    rollout = Rollout(
        **{f: getattr(plain, f) for f in plain.__dataclass_fields__ if f != "obs"},
        obs={"image": image[:-1], "speed": speed[:-1]},
    )
    paid = owner.add_bonus(rollout, {"image": image[-1], "speed": speed[-1]})
    assert (paid.reward > 1.0).all()
    assert paid.obs is rollout.obs


def test_a_rollout_of_ends_teaches_nothing_and_harms_nothing():
    owner = curious(1)
    paid = owner.add_bonus(
        a_rollout(np.ones((1, 1, 1), np.float32), ended=[(0, 0)]), {"obs": np.ones((1, 1), np.float32)}
    )
    assert paid.reward.tolist() == [[1.0]]
    assert paid.stats["curiosity_loss"] == 0.0


def a_spec(curiosity: str = "rnd", *, env: str = "surefoot/Maze-v0", envs: int = 4, **collect: Any) -> RunSpec:
    ppo = PPOConfig(rollout_steps=16, envs=envs, minibatch_size=32, epochs=2, lr="lin_3e-3", device="cpu")
    return RunSpec(
        env=env,
        preset="sb3",
        total_steps=6 * 16 * 4,
        ppo=ppo,
        net=NetConfig(hidden=(8,)),
        collect=CollectConfig(curiosity=curiosity, curiosity_hidden=(16,), **collect),
        eval_every=0,
        checkpoint_every=100,
    )


@pytest.mark.parametrize("curiosity", ["rnd", "icm"])
@pytest.mark.parametrize("env", ["surefoot/Maze-v0", "Pendulum-v1", "surefoot/TwoKnobs-v0"])
def test_a_run_with_curiosity_goes_on_to_the_last_bit(curiosity: str, env: str, tmp_path: Path):
    spec = a_spec(curiosity, env=env, curiosity_coef="lin_1")
    whole, first = Training(spec), Training(spec)
    reports = [report.metrics() | report.stats for report in whole]
    for _ in range(2):
        first.update()
    save_checkpoint(tmp_path, 2, first.state())
    second = Training(spec)
    second.set_state(load_checkpoint(tmp_path).parts)
    assert [report.metrics() | report.stats for report in second] == reports[2:]
    for mine, theirs in ((whole.policy, second.policy), (whole.curiosity.net, second.curiosity.net)):
        for name, x in mine.state_dict().items():
            assert torch.equal(x, theirs.state_dict()[name])


def test_without_it_nothing_is_different():
    plain = Training(a_spec("none"))
    assert plain.curiosity is None
    assert "curiosity" not in plain.state()
    report = plain.update()
    assert "bonus_mean" not in report.stats
    assert "curiosity" not in report.seconds


def test_reports_of_episodes_stay_the_worlds_own():
    world = Streams("tiny", Maze("#####\n#S.G#\n#####", limit=4), 4)
    training = Training(a_spec(), world=world)
    report = training.update()
    assert report.stats["bonus_mean"] > 0
    assert report.seconds["curiosity"] > 0
    assert {episode.return_ for episode in training.collector.episodes.take_fresh()} <= {0.0, 1.0}


def test_curiosity_moves_to_another_number_of_streams():
    first, second = Training(a_spec()), Training(a_spec(envs=2))
    first.update()
    state = first.curiosity.state()
    second.curiosity.set_state(state)
    assert second.curiosity.scaler.running.tolist() == [0.0, 0.0]
    assert second.curiosity.scaler.count == first.curiosity.scaler.count


def test_a_state_of_another_kind_is_refused():
    with pytest.raises(CheckpointIncompatible, match="does not match curiosity=icm"):
        Training(a_spec("icm")).curiosity.set_state(Training(a_spec("rnd")).curiosity.state())


def test_a_model_that_was_not_curious_becomes_so():
    first = Training(a_spec("none"))
    first.update()
    second = Training(a_spec("rnd"))
    second.set_state(first.state())
    assert second.update().stats["bonus_mean"] > 0


def test_the_knobs_are_settings_like_any_other():
    _, _, collect = split_settings({"curiosity": "rnd", "int_coef": "lin_0.5", "curiosity_hidden": "32"})
    assert collect == {"curiosity": "rnd", "curiosity_coef": Linear(0.5), "curiosity_hidden": (32,)}
    assert CollectConfig.from_json(CollectConfig(**collect).to_json()) == CollectConfig(**collect)
    with pytest.raises(ConfigError, match="curiosity is 'rmd'"):
        CollectConfig(curiosity="rmd")
