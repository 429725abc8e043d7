"""The built-in environments through Gymnasium's registry and its single-env interface."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env as gymnasium_check_env

from surefoot.data.spaces import Box
from surefoot.envs.check import check_env
from surefoot.envs.gym.single_envs import EnvsWorld
from surefoot.envs.gym.snapshot import why_inexact
from surefoot.envs.make import make_world
from surefoot.envs.register import observation_to_gym, own_worlds, register_envs
from surefoot.errors import EnvError

OURS = sorted(name for name in own_worlds() if name.startswith("surefoot/"))


# Gymnasium's check tries actions that a mask forbids; ours, below, does not.
@pytest.mark.parametrize("name", [name for name in OURS if name != "surefoot/Masked-v0"])
def test_built_in_environments_pass_gymnasiums_own_check(name: str) -> None:
    register_envs()
    register_envs()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it also has opinions about the bounds of spaces
        gymnasium_check_env(gym.make(name, disable_env_checker=True).unwrapped)


@pytest.mark.parametrize("name", OURS)
def test_built_in_environments_pass_our_own_check(name: str) -> None:
    assert [finding for finding in check_env(name, episodes=1) if finding.level == "error"] == []


def same(parts: dict[str, np.ndarray], obs: Any) -> bool:
    """True if a world's first stream sees what Gymnasium's env shows: one plain observation, or a dict of parts."""
    seen = obs if isinstance(obs, dict) else {"obs": obs}
    return set(parts) == set(seen) and all(np.array_equal(part[0], seen[name]) for name, part in parts.items())


@pytest.mark.parametrize("name", OURS)
def test_built_in_environments_are_the_same_through_gymnasium(name: str) -> None:
    """A stream alone and the same stream through Gymnasium's single env, from the seed that env draws."""
    register_envs()
    env = gym.make(name)
    obs, info = env.reset(seed=4)
    world = own_worlds()[name](1)
    seed = int(gym.utils.seeding.np_random(4)[0].integers(2**31))
    assert same(world.reset(seed).obs, obs)
    env.action_space.seed(0)
    for _ in range(30):
        action = env.action_space.sample(info["action_mask"]) if "action_mask" in info else env.action_space.sample()
        step = world.step(np.asarray(action)[None])
        obs, reward, terminated, truncated, info = env.step(action)
        assert (reward, terminated, truncated) == (step.reward[0], step.terminated[0], step.truncated[0])
        if terminated or truncated:
            assert step.final_obs is not None
            assert same(step.final_obs, obs)
            break
        assert same(step.view.obs, obs)


@pytest.mark.parametrize("name", OURS)
def test_built_in_environments_stay_exact_inside_gymnasium(name: str) -> None:
    register_envs()
    assert why_inexact(gym.make(name)) is None
    world, other = (make_world(name, 2, max_episode_steps=9) for _ in range(2))
    assert world.inexact is None
    view = world.reset(1)
    other.set_state(world.state())
    rng = np.random.default_rng(0)
    for _ in range(25):
        assert isinstance(world, EnvsWorld)
        world.envs[0].action_space.seed(int(rng.integers(99)))
        action = np.stack([world.envs[0].action_space.sample() for _ in range(2)])
        if view.action_mask is not None:
            action = view.action_mask.argmax(axis=1)
        a, b = world.step(action), other.step(action)
        assert np.array_equal(a.view.obs["obs"], b.view.obs["obs"])
        assert np.array_equal(a.reward, b.reward)
        view = a.view


def test_a_single_observation_is_a_box_and_several_are_a_dict():
    assert observation_to_gym({"obs": Box((2,))}).shape == (2,)
    assert set(observation_to_gym({"obs": Box((2,)), "map": Box((3, 3), 0.0, 255.0, "uint8")})) == {"obs", "map"}
    with pytest.raises(EnvError, match="box of float64"):
        observation_to_gym({"obs": Box((2,), dtype="float64")})
