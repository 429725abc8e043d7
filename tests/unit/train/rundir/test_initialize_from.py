"""Beginning with another run's weights: what comes along, and what starts fresh."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from surefoot import PPO
from surefoot.envs.make import make_world
from surefoot.errors import CheckpointIncompatible, ConfigError
from surefoot.train.rundir.initialize_from import adopt
from surefoot.train.spec import make_spec
from surefoot.train.training import Training

SMALL = {"n_envs": 2, "n_steps": 16, "batch_size": 16, "n_epochs": 1}


def a_training(env: str = "CartPole-v1", **settings) -> Training:
    spec = make_spec(
        env, make_world(env, 1).action, preset_name="sb3", settings={**SMALL, **settings}, total_steps=256, eval_every=0
    )
    return Training(spec)


def saved(path: Path, env: str = "CartPole-v1", **settings) -> PPO:
    model = PPO("MlpPolicy", env, preset="sb3", **{**SMALL, **settings})
    model.learn(64)
    model.save(path)
    return model


def test_weights_come_along_and_everything_else_starts_fresh(tmp_path: Path):
    model, training = saved(tmp_path, seed=3), a_training()
    assert adopt(training, tmp_path) == 2
    for a, b in zip(model.policy.parameters(), training.policy.parameters(), strict=True):
        assert torch.equal(a, b)
    assert (training.learner.updates, training.env_steps) == (0, 0)
    assert all(not x.any() for x in training.learner.optimizer.tensors().values())
    assert training.update().first_ratio_error < 1e-5


@pytest.mark.parametrize("scaled", [True, False])
def test_the_scale_of_rewards_comes_along_where_both_scale(tmp_path: Path, scaled: bool):
    model = saved(tmp_path, "Pendulum-v1", normalize={"norm_obs": True, "norm_reward": True})
    training = a_training("Pendulum-v1", normalize={"norm_obs": True, "norm_reward": scaled})
    adopt(training, tmp_path)
    assert training.policy.flatten.normalizer.count == model.policy.flatten.normalizer.count > 0
    expected = model.training.collector.scaler.var if scaled else 1.0
    assert training.collector.scaler.var == expected


def test_weights_of_another_shape_or_another_world_are_refused(tmp_path: Path):
    saved(tmp_path)
    with pytest.raises(CheckpointIncompatible, match="belong to another policy"):
        adopt(a_training(net_arch=[8]), tmp_path)
    with pytest.raises(ConfigError, match="use the env it was made for"):
        adopt(a_training("Pendulum-v1"), tmp_path)
