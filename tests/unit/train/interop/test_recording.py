"""Episodes kept as they were played, and the file that holds them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from surefoot.data.trajectory import Recording
from surefoot.envs.make import make_world
from surefoot.errors import ConfigError, RecordingError
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.train.evaluate import play
from surefoot.train.interop.recording import load_recording, record, save_recording

WORLDS = ["CartPole-v1", "Pendulum-v1", "surefoot/Masked-v0", "surefoot/TwoKnobs-v0"]


def recorded(env: str, episodes: int = 5, streams: int = 2, seed: int = 3, **how) -> tuple[Recording, ActorCritic]:
    world = make_world(env, streams)
    policy = ActorCritic(world.observation, world.action, NetConfig(hidden=(8,)), seed=1)
    return record(policy, world, episodes, seed=seed, **how), policy


def assert_same(one: Recording, other: Recording) -> None:
    assert (one.env, one.observation, one.action) == (other.env, other.observation, other.action)
    for a, b in zip(one.episodes, other.episodes, strict=True):
        assert (a.terminated, a.truncated) == (b.terminated, b.truncated)
        for name in a.obs:
            np.testing.assert_array_equal(a.obs[name], b.obs[name])
        for name in ("action", "reward", "action_mask"):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


@pytest.mark.parametrize("env", WORLDS)
@pytest.mark.parametrize("deterministic", [True, False])
def test_the_episodes_are_those_that_an_evaluation_plays(env: str, deterministic: bool):
    made, policy = recorded(env, deterministic=deterministic)
    played = play(policy, make_world(env, 2), 5, seed=3, deterministic=deterministic)
    assert [e.return_ for e in made.episodes] == pytest.approx(played.returns)
    assert [e.steps for e in made.episodes] == played.lengths


def test_each_observation_follows_from_the_one_before_it():
    """CartPole's own equations: the position moves by the speed, in every row and into the last."""
    made, _ = recorded("CartPole-v1", deterministic=False)
    for episode in made.episodes:
        obs = episode.obs["obs"].astype(float)
        np.testing.assert_allclose(obs[1:, 0], obs[:-1, 0] + 0.02 * obs[:-1, 1], atol=1e-6)
        assert episode.terminated
        assert abs(obs[-1, 2]) > 0.209 or abs(obs[-1, 0]) > 2.4
        assert (np.abs(obs[:-1, 2]) <= 0.2095).all()


def test_an_episode_that_ran_out_of_time_is_truncated_and_not_terminated():
    made, _ = recorded("Pendulum-v1", 2)
    assert [(e.steps, e.terminated, e.truncated) for e in made.episodes] == [(200, False, True)] * 2


def test_masks_are_kept_where_there_are_any():
    made, _ = recorded("surefoot/Masked-v0", deterministic=False)
    for episode in made.episodes:
        assert episode.action_mask is not None
        chosen = np.take_along_axis(episode.action_mask, episode.action[:, None], axis=1)
        assert chosen.all()


@pytest.mark.parametrize("env", WORLDS)
def test_a_file_gives_back_every_bit(env: str, tmp_path: Path):
    made, _ = recorded(env, deterministic=False)
    assert_same(load_recording(save_recording(made, tmp_path / "a" / "b.safetensors")), made)


def test_a_file_that_is_something_else_is_refused_with_a_sentence(tmp_path: Path):
    made, _ = recorded("CartPole-v1", 2)
    path = save_recording(made, tmp_path / "x.safetensors")
    with pytest.raises(RecordingError, match="cannot be read as a recording"):
        load_recording(tmp_path / "none.safetensors")
    save_file(load_file(path), tmp_path / "weights.safetensors")
    with pytest.raises(RecordingError, match="is not a recording"):
        load_recording(tmp_path / "weights.safetensors")
    (tmp_path / "cut.safetensors").write_bytes(path.read_bytes()[:-9])
    with pytest.raises(RecordingError, match="cannot be read"):
        load_recording(tmp_path / "cut.safetensors")
    from safetensors import safe_open

    with safe_open(path, "numpy") as file:
        about = file.metadata()
    arrays = load_file(path)
    save_file({**arrays, "steps": arrays["steps"] + 1}, tmp_path / "long.safetensors", metadata=about)
    with pytest.raises(RecordingError, match="lacks a part of a recording"):
        load_recording(tmp_path / "long.safetensors")
    save_file({**arrays, "action": arrays["action"][:3]}, tmp_path / "short.safetensors", metadata=about)
    with pytest.raises(RecordingError, match="is damaged: action has 3 rows"):
        load_recording(tmp_path / "short.safetensors")


def test_no_episode_is_no_recording():
    with pytest.raises(ConfigError, match="episodes is 0"):
        recorded("CartPole-v1", 0)


def test_a_policy_is_told_where_episodes_begin():
    class Listening(ActorCritic):
        def __init__(self, *spaces) -> None:
            super().__init__(*spaces, NetConfig(hidden=(8,)), seed=1)
            self.heard: list[np.ndarray] = []

        def act(self, seen, *, generator, deterministic=False):
            self.heard.append(seen.start.numpy().copy())
            return super().act(seen, generator=generator, deterministic=deterministic)

    world = make_world("CartPole-v1", 1)
    policy = Listening(world.observation, world.action)
    made = record(policy, world, 3, seed=0)
    begins = np.cumsum([0, *(e.steps for e in made.episodes)])[:-1]
    assert np.flatnonzero(np.concatenate(policy.heard)).tolist() == begins.tolist()
