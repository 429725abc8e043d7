"""EnvPool's streams as a world: what follows an end, what an end was, and whole games."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import numpy as np
import pytest

from surefoot.envs.gym.envpool import pool_id, pool_options
from surefoot.envs.make import backend_of, make_world
from surefoot.errors import ConfigError, EnvError, UnknownEnv
from surefoot.train.collect.episodes import EpisodeLog

needs_envpool = pytest.mark.skipif(find_spec("envpool") is None, reason="EnvPool is not installed")


def test_atari_goes_by_another_name_there():
    assert pool_id("ALE/MsPacman-v5") == pool_id("MsPacmanNoFrameskip-v4") == "MsPacman-v5"
    assert pool_id("CartPole-v1") == "CartPole-v1"


def test_wrappers_and_workers_are_refused_with_what_works():
    with pytest.raises(ConfigError, match="takes no wrappers"):
        pool_options({}, True, None, 0)
    with pytest.raises(ConfigError, match=r"env_kwargs=\{'num_threads': 3\}"):
        pool_options({}, False, None, 3)
    assert pool_options({"num_threads": 1}, False, 9, "auto") == {"max_episode_steps": 9, "num_threads": 1}


def test_a_missing_envpool_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "envpool", None)
    with pytest.raises(EnvError, match=r'pip install "surefoot\[envpool\]"'):
        make_world("CartPole-v1", backend="envpool")


@needs_envpool
def test_an_unknown_env_is_told_its_neighbour():
    with pytest.raises(UnknownEnv, match="EnvPool has no env 'CartPoel-v1'; did you mean CartPole-v1"):
        make_world("CartPoel-v1", backend="envpool")


@needs_envpool
def test_it_says_who_runs_it_and_that_a_resume_is_not_exact():
    world = make_world("CartPole-v1", 2, backend="envpool")
    assert (world.name, backend_of(world), world.num_envs) == ("CartPole-v1", "envpool", 2)
    assert "does not export its state" in (world.inexact or "")


@needs_envpool
def test_a_seed_is_all_the_chance_there_is():
    world = make_world("CartPole-v1", 3, backend="envpool")
    first, other = world.reset(7).obs["obs"], world.reset(8).obs["obs"]
    for _ in range(20):
        world.step(np.zeros(3, np.int64))
    np.testing.assert_array_equal(world.reset(7).obs["obs"], first)
    assert not np.array_equal(first, other)


@needs_envpool
def test_streams_obey_gymnasiums_physics_and_a_reset_costs_a_ghost_row():
    """The answer is known from Gymnasium's own env, put where the stream was before each step."""
    import gymnasium as gym

    world = make_world("CartPole-v1", 4, backend="envpool", max_episode_steps=25)
    truth = gym.make("CartPole-v1").unwrapped
    truth.reset(seed=0)
    view = world.reset(0)
    waiting, age, rng = np.zeros(4, bool), np.zeros(4, int), np.random.default_rng(0)
    ends = {"terminated": 0, "truncated": 0}
    for _ in range(120):
        action = rng.integers(0, 2, 4)
        action[3] = 0  # falls at once; the others last longer, some to the limit
        step = world.step(action)
        np.testing.assert_array_equal(step.valid, ~waiting)
        for i in range(4):
            if waiting[i]:
                age[i] = 0
                assert np.abs(step.view.obs["obs"][i]).max() <= 0.05, "the first view of an episode"
                assert (step.terminated[i], step.truncated[i]) == (False, False)
                continue
            truth.state = view.obs["obs"][i].astype(np.float64)  # type: ignore[attr-defined]
            truth.steps_beyond_terminated = None  # type: ignore[attr-defined]
            successor, reward, fallen, *_ = truth.step(int(action[i]))
            age[i] += 1
            np.testing.assert_allclose(step.view.obs["obs"][i], successor, atol=1e-5)
            assert step.reward[i] == reward
            if age[i] < 25:
                assert (bool(step.terminated[i]), bool(step.truncated[i])) == (fallen, False)
            else:
                assert step.truncated[i]
            if step.terminated[i] or step.truncated[i]:
                assert step.final_obs is not None
                np.testing.assert_allclose(step.final_obs["obs"][i], successor, atol=1e-5)
                ends["terminated" if step.terminated[i] else "truncated"] += 1
        waiting, view = step.terminated | step.truncated, step.view
    assert ends["terminated"] > 3
    assert ends["truncated"] > 1


@needs_envpool
def test_at_the_limit_it_calls_truncated_what_fell_in_that_very_step():
    """As EnvPool does it, and nothing in its answer tells; written down so that a change is noticed."""
    world = make_world("CartPole-v1", 64, backend="envpool", max_episode_steps=9)
    world.reset(0)
    for _ in range(9):
        step = world.step(np.zeros(64, np.int64))
    assert step.final_obs is not None
    fallen = np.abs(step.final_obs["obs"][:, 2]) > 0.2095
    assert (fallen & step.truncated).any()
    assert not (fallen & step.terminated).any()


@needs_envpool
def test_a_lost_life_ends_the_episode_and_people_are_told_of_whole_games():
    world = make_world("BreakoutNoFrameskip-v4", 2, backend="envpool", env_kwargs={"num_threads": 1})
    view = world.reset(4)
    assert (view.obs["obs"].shape, view.obs["obs"].dtype) == ((2, 4, 84, 84), np.uint8)
    log, lives, ghosts = EpisodeLog(2), np.zeros(2, int), 0
    total, told = np.zeros(2), []
    rng = np.random.default_rng(0)
    for _ in range(260):
        step = world.step(rng.integers(0, 4, 2))
        ended = step.terminated | step.truncated
        ghosts += int((~step.valid).sum())
        total += step.reward * step.valid
        log.count(step)
        log.finish(step, ended)
        for i in np.flatnonzero(ended):
            lives[i] += 1
            last = lives[i] % 5 == 0
            assert np.isnan(step.stats["whole_return"][i]) == (not last)
            if last:
                told.append(total[i])
                total[i] = 0.0
    assert (lives >= 5).all()
    assert lives.sum() - 2 <= ghosts <= lives.sum()
    assert [episode.return_ for episode in log.take_fresh()] == told
    assert any(told)


@needs_envpool
def test_a_game_that_is_cut_short_is_whole():
    world = make_world("ALE/Pong-v5", 1, backend="envpool", max_episode_steps=6)
    world.reset(0)
    steps = [world.step(np.array([0])) for _ in range(7)]
    assert [bool(step.truncated[0]) for step in steps] == [False] * 5 + [True, False]
    assert [bool(step.valid[0]) for step in steps] == [True] * 6 + [False]
    assert steps[5].stats["whole_return"][0] == 0.0
