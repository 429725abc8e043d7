"""The shipped numbers against the tables they were taken from."""

from __future__ import annotations

from typing import Any

import pytest

from surefoot.errors import ConfigError
from surefoot.learn.config import PPOConfig
from surefoot.learn.presets import FAMILIES, PRESETS, family_preset, preset
from surefoot.learn.schedule import Linear
from surefoot.nets.config import NetConfig
from surefoot.train.config import CollectConfig

# name: (lr, gamma, lam, clip, epochs, minibatch, steps, ent_coef, vf_coef, max_grad_norm)
TABLES: dict[str, tuple[Any, ...]] = {
    "sb3": (3e-4, 0.99, 0.95, 0.2, 10, 64, 2048, 0.0, 0.5, 0.5),
    "stable": (3e-4, 0.99, 0.95, 0.2, 10, 64, 2048, 0.01, 0.5, 0.5),
    "fast": (5e-4, 0.99, 0.95, 0.3, 15, 64, 512, 0.01, 0.5, 0.5),
    "sample-efficient": (3e-4, 0.99, 0.95, 0.1, 5, 256, 4096, 0.01, 0.5, 0.5),
    "robotics": (3e-4, 0.99, 0.95, 0.2, 4, 64, 16, 0.01, 0.5, 0.5),
    "atari": (3e-4, 0.99, 0.95, 0.2, 4, 64, 128, 0.01, 1.0, 0.5),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_preset_has_the_numbers_of_its_source(name: str):
    c = PPOConfig.make(name)
    got = (
        c.lr,
        c.gamma,
        c.lam,
        c.clip,
        c.epochs,
        c.minibatch_size,
        c.rollout_steps,
        c.ent_coef,
        c.vf_coef,
        c.max_grad_norm,
    )
    assert got == TABLES[name]


def test_sb3_is_the_plain_config():
    assert PPOConfig.make("sb3") == PPOConfig()


def test_cartpole_has_the_zoos_numbers():
    c = PPOConfig.make("cartpole")
    assert (c.envs, c.rollout_steps, c.minibatch_size, c.epochs, c.lam, c.gamma) == (8, 32, 256, 20, 0.8, 0.98)
    assert (c.lr, c.clip) == (Linear(1e-3), Linear(0.2))
    assert preset("cartpole").total_steps == 100_000


def test_atari_has_the_zoos_numbers():
    c = PPOConfig.make("ale")
    assert (c.envs, c.rollout_steps, c.minibatch_size, c.epochs, c.ent_coef, c.vf_coef) == (8, 128, 256, 4, 0.01, 0.5)
    assert (c.lr, c.clip, c.gamma, c.lam, c.max_grad_norm) == (Linear(2.5e-4), Linear(0.1), 0.99, 0.95, 0.5)
    assert (preset("ale").net["shared"], preset("ale").net["hidden"]) == (True, (512,))
    assert preset("ale").total_steps == 10_000_000


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_makes_three_valid_configs(name: str):
    entry = preset(name)
    assert entry.name == name
    assert entry.summary.endswith(".")
    PPOConfig(**entry.ppo)
    NetConfig(**entry.net)
    CollectConfig(**entry.collect)


@pytest.mark.parametrize(
    ("env_id", "name"),
    [
        ("CartPole-v1", "cartpole"),
        ("surefoot/CartPoleContinuous-v0", "cartpole-continuous"),
        ("Acrobot-v1", "acrobot"),
        ("Pendulum-v1", "pendulum"),
        ("MountainCar-v0", "mountain-car"),
        ("MountainCarContinuous-v0", "mountain-car-continuous"),
        ("LunarLander-v3", "lunar-lander"),
        ("LunarLanderContinuous-v3", "lunar-lander"),
        ("BipedalWalker-v3", "bipedal-walker"),
        ("ALE/Pong-v5", "ale"),
        ("BreakoutNoFrameskip-v4", "ale"),
        ("HalfCheetah-v5", "mujoco"),
        ("Hopper-v5", "mujoco"),
        ("Walker2d-v5", "mujoco"),
        ("Ant-v5", "mujoco"),
        ("Humanoid-v5", "humanoid"),
        ("HumanoidStandup-v5", "humanoid"),
        ("Swimmer-v5", "swimmer"),
        ("Reacher-v5", "reacher"),
        ("Pusher-v5", "mujoco"),
        ("InvertedPendulum-v5", "inverted-pendulum"),
        ("InvertedDoublePendulum-v5", "inverted-double-pendulum"),
        ("MyOwn-v0", "default-discrete"),
    ],
)
def test_a_world_finds_its_family(env_id: str, name: str):
    assert family_preset(env_id) == name


def test_only_an_unknown_world_is_asked_for_its_kind_of_actions():
    assert family_preset("MyOwn-v0", continuous=True) == "default-continuous"
    assert family_preset("CartPole-v1", continuous=True) == "cartpole"


def test_every_family_has_a_preset_and_the_last_fits_all():
    assert {name for _, name in FAMILIES} <= set(PRESETS)
    assert FAMILIES[-1][0] == "*"


def test_an_unknown_preset_is_told_its_neighbour():
    with pytest.raises(ConfigError, match="no preset is called 'stabel'; did you mean stable"):
        preset("stabel")
    with pytest.raises(ConfigError, match="there are sb3, stable"):
        preset("zzzzzz")
