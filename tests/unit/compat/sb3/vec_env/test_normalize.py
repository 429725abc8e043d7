from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from tests.unit.compat.sb3.small_env import CountingEnv

from surefoot.compat.sb3.vec_env import DummyVecEnv, VecNormalize
from surefoot.compat.sb3.vec_env.normalize import RunningMeanStd
from surefoot.errors import CheckpointCorrupt

SAMPLE = Path(__file__).parents[4] / "samples" / "sb3" / "vecnormalize.pkl"
"""Written by Stable-Baselines3 2.9.2 for Pendulum-v1, with clip_obs=5."""


def test_merged_moments_are_those_of_all_rows():
    rows = np.random.default_rng(0).normal(size=(20, 3))
    moments = RunningMeanStd(epsilon=0.0, shape=(3,))
    for part in (rows[:5], rows[5:]):
        moments.update(part)
    assert np.allclose(moments.mean, rows.mean(axis=0))
    assert np.allclose(moments.var, rows.var(axis=0))


@pytest.mark.parametrize(
    "rows", [np.random.default_rng(1).normal(size=(7, 3)).astype(np.float32), np.eye(4, dtype=np.uint8)]
)
def test_the_moments_of_a_batch_have_the_digits_of_numpy(rows):
    fast, plain = RunningMeanStd(shape=rows.shape[1:]), RunningMeanStd(shape=rows.shape[1:])
    fast.update(rows)
    plain.update_from_moments(np.mean(rows, axis=0), np.var(rows, axis=0), len(rows))
    np.testing.assert_array_equal(fast.mean, plain.mean)
    np.testing.assert_array_equal(fast.var, plain.var)


def test_statistics_are_saved_without_pickle(tmp_path):
    env = VecNormalize(DummyVecEnv([CountingEnv]), clip_obs=3.0)
    env.reset()
    for _ in range(9):
        env.step([0])
    env.save(tmp_path / "stats.pkl")
    loaded = VecNormalize.load(tmp_path / "stats.pkl", DummyVecEnv([CountingEnv]))
    assert loaded.clip_obs == 3.0
    assert np.array_equal(loaded.obs_rms.mean, env.obs_rms.mean)
    assert loaded.ret_rms.count == env.ret_rms.count
    original = env.get_original_obs()
    assert np.allclose(env.unnormalize_obs(env.normalize_obs(original))[0, 0], original[0, 0], atol=1e-4)
    (tmp_path / "other").write_bytes(b"\x80\x04.")
    with pytest.raises(CheckpointCorrupt):
        VecNormalize.load(tmp_path / "other", DummyVecEnv([CountingEnv]))


def test_statistics_of_observations_that_sb3_wrote_are_read_without_running_the_pickle():
    with pytest.warns(UserWarning, match="rewards are scaled anew"):
        env = VecNormalize.load(SAMPLE, DummyVecEnv([lambda: gym.make("Pendulum-v1")]))
    mean, var = (
        [-0.147740302579343, 0.008500244655608662, 0.13900504667566824],
        [0.5019403646644306, 0.47616037896747, 13.51485713],
    )
    expected = np.clip((np.array([1.0, 0.5, 20.0]) - mean) / np.sqrt(var), -5.0, 5.0)
    np.testing.assert_allclose(env.normalize_obs(np.array([[1.0, 0.5, 20.0]]))[0], expected, rtol=1e-6)


def test_nothing_changes_without_training():
    env = VecNormalize(DummyVecEnv([CountingEnv]), training=False)
    env.reset()
    env.step([0])
    assert env.obs_rms.count == pytest.approx(1e-4)
