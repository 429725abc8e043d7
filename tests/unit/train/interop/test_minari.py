"""Recordings to Minari and back, on a directory of their own; and Minari's own datasets in."""

from __future__ import annotations

import builtins
import warnings
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from surefoot.data.spaces import Box, Discrete, MultiDiscrete
from surefoot.data.trajectory import Recording, Trajectory
from surefoot.envs.make import make_world
from surefoot.errors import ConfigError, RecordingError
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.train.interop.minari import read_minari, write_minari
from surefoot.train.interop.recording import record


@pytest.fixture
def minari(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    module = pytest.importorskip("minari")
    pytest.importorskip("h5py")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))
    return module


def assert_same(one: Recording, other: Recording) -> None:
    assert one.action == other.action
    assert {k: b.shape for k, b in one.observation.items()} == {k: b.shape for k, b in other.observation.items()}
    for a, b in zip(one.episodes, other.episodes, strict=True):
        assert (a.terminated, a.truncated) == (b.terminated, b.truncated)
        for name in a.obs:
            np.testing.assert_array_equal(a.obs[name], b.obs[name])
            assert a.obs[name].dtype == b.obs[name].dtype
        for name in ("action", "reward", "action_mask"):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


@pytest.mark.parametrize("env", ["CartPole-v1", "Pendulum-v1", "surefoot/Masked-v0", "surefoot/TwoKnobs-v0"])
def test_a_recording_survives_the_way_there_and_back(minari, env: str):
    world = make_world(env, 2)
    policy = ActorCritic(world.observation, world.action, NetConfig(hidden=(8,)))
    made = record(policy, world, 3, seed=0, deterministic=False)
    write_minari(made, "ours/test-v0")
    assert_same(read_minari("ours/test-v0"), made)
    assert minari.load_dataset("ours/test-v0").total_steps == made.steps


def test_several_parts_of_several_kinds_survive_too(minari):
    rng = np.random.default_rng(0)
    observation = {"near": Box((3,)), "picture": Box((2, 2, 1), 0.0, 255.0, "uint8")}
    episodes = [
        Trajectory(
            obs={"near": rng.normal(size=(n + 1, 3)).astype(np.float32), "picture": rng.integers(0, 256, (n + 1, 2, 2, 1)).astype(np.uint8)},
            action=np.stack([rng.integers(0, 2, n), rng.integers(0, 4, n)], axis=1),
            reward=rng.normal(size=n),
            terminated=n == 4,
            truncated=n != 4,
        )
        for n in (1, 4, 7)
    ]  # fmt: skip
    made = Recording(env="Nowhere-v0", observation=observation, action=MultiDiscrete((2, 4)), episodes=episodes)
    write_minari(made, "ours/parts-v0")
    back = read_minari("ours/parts-v0")
    assert_same(back, made)
    assert back.observation["picture"].dtype == "uint8"


def test_a_dataset_that_minari_collected_itself_is_read_as_a_world_would_show_it(minari):
    """FrozenLake's Discrete observations as one-hots; CliffWalking-like starts of actions are the world's own names."""

    class Corridor(gym.Env):
        observation_space = spaces.Discrete(4, start=10)
        action_space = spaces.Discrete(2, start=3)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.at = 10
            return self.at, {}

        def step(self, action):
            self.at += int(action) - 3
            return self.at, float(self.at == 13), self.at == 13, False, {}

    from minari.data_collector import EpisodeBuffer

    buffers, env = [], Corridor()
    for _ in range(2):
        obs, _ = env.reset()
        seen, chosen, rewards, ends = [obs], [], [], []
        for action in (4, 3, 4, 4):
            obs, reward, terminated, _, _ = env.step(action)
            seen.append(obs)
            chosen.append(action)
            rewards.append(reward)
            ends.append(terminated)
        buffers.append(
            EpisodeBuffer(
                observations=np.array(seen),
                actions=np.array(chosen),
                rewards=rewards,
                terminations=ends,
                truncations=[False] * 4,
            )
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        minari.create_dataset_from_buffers(
            "theirs/corridor-v0", buffers, observation_space=env.observation_space, action_space=env.action_space
        )
    back = read_minari("theirs/corridor-v0")
    assert back.env == "theirs/corridor-v0"
    assert back.action == Discrete(2, start=3)
    (first, _) = back.episodes
    np.testing.assert_array_equal(first.obs["obs"].argmax(axis=1), [0, 1, 1, 2, 3])
    assert first.obs["obs"].shape == (5, 4)
    assert first.action.tolist() == [4, 3, 4, 4]
    assert (first.return_, first.terminated, first.truncated) == (1.0, True, False)


def test_a_dataset_that_is_not_there_is_named_with_those_that_are(minari):
    with pytest.raises(RecordingError, match=r"no Minari dataset 'no/such-v0' on this machine.*available: none"):
        read_minari("no/such-v0")


def test_a_name_that_minari_does_not_take_is_a_sentence(minari):
    episode = Trajectory(
        obs={"obs": np.zeros((2, 1), np.float32)}, action=np.zeros(1, np.int64), reward=np.ones(1), terminated=True, truncated=False
    )  # fmt: skip
    made = Recording(env="X-v0", observation={"obs": Box((1,))}, action=Discrete(2), episodes=[episode])
    with pytest.raises(RecordingError, match="cannot write the Minari dataset 'no version'"):
        write_minari(made, "no version")
    write_minari(made, "one/two-v0")
    with pytest.raises(RecordingError, match="cannot write the Minari dataset 'one/two-v0'"):
        write_minari(made, "one/two-v0")


def test_without_minari_one_sentence_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    real = builtins.__import__

    def none(name, *args, **kwargs):
        if name == "minari":
            raise ImportError("No module named 'minari'", name="minari")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", none)
    with pytest.raises(ConfigError, match=r"need the package minari: pip install 'surefoot\[minari\]'"):
        read_minari("a/b-v0")
